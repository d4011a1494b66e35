"""The Trainer of Hugging Face transformers on planned batches. Nothing else imports transformers: import it by name."""

try:
    import transformers as _transformers  # noqa: F401
except ImportError as _error:
    _sentence = 'lengthwise.torch.huggingface needs transformers 5: pip install "transformers[torch]"'
    raise ImportError(_sentence) from _error

from lengthwise.torch.huggingface.trainer import PlannedTrainer as PlannedTrainer
