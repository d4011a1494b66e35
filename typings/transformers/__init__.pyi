# What the library takes of transformers, for Pyright: to find these by the package's own `__init__.py`, it would read
# all models, 2,600 files. The classes themselves are read where they are written.
from transformers.trainer import Trainer as Trainer
from transformers.trainer_callback import TrainerCallback as TrainerCallback
from transformers.training_args import TrainingArguments as TrainingArguments
