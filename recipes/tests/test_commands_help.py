"""What `lengthwise --help` says of the commands of the recipes, which it does not import."""

import argparse

import pytest

from lengthwise.cli import plugins

FOUND = plugins.find(())


@pytest.mark.parametrize("name", plugins.COMMANDS_OF_RECIPES)
def test_the_list_of_commands_says_what_the_command_says_of_itself(name):
    parser = argparse.ArgumentParser(prog="lengthwise")
    commands = parser.add_subparsers()
    plugins.add(commands, FOUND[name], load=False)
    listed = " ".join(parser.format_help().split())
    itself = argparse.ArgumentParser().add_subparsers()
    plugins.add(itself, FOUND[name], load=True)
    description = itself.choices[name].description
    assert f"{name} {description[0].lower()}{description[1:].rstrip('.')} " in listed
