"""`nephoscope help`: the commands of a topic, or the help of one command."""

from __future__ import annotations

from dataclasses import dataclass

import click

from nephoscope.cli.kit import output, registered
from nephoscope.cli.kit.command import command
from nephoscope.cli.kit.options import argument, flag
from nephoscope.cli.kit.summaries import summary_of
from nephoscope.core.errors import UsageError
from nephoscope.results.feature import Topic, command_name, features

_ALL = "all"


@dataclass(frozen=True, slots=True)
class _HelpArguments:
    words: tuple[str, ...] = argument(nargs=-1, required=False, metavar="[TOPIC|COMMAND]")
    every: bool = flag("--all", "Describe the commands of all topics.")


@command(examples=("results", "sla verdict"))
def help_(args: _HelpArguments) -> None:
    """Describe the commands of a topic, or one command.

    TOPIC is measure, results, decide, cloud, emulate, tools or all.
    """
    topics = {topic.value.lower(): topic for topic in Topic}
    word = args.words[0].lower() if len(args.words) == 1 else ""
    if args.every or word == _ALL:
        output.say("\n\n".join(map(_topic_text, Topic)))
    elif word in topics:
        output.say(_topic_text(topics[word]))
    else:
        output.say(_help_of(args.words, topics))


def _topic_text(topic: Topic) -> str:
    references = [ref for entry in features() if entry.topic is topic for ref in entry.commands]
    width = max(len(command_name(reference)) for reference in references)
    lines = [f"  {command_name(ref):<{width}}  {summary_of(ref)}" for ref in references]
    return "\n".join([topic.value, *lines])


def _help_of(words: tuple[str, ...], topics: dict[str, Topic]) -> str:
    """Returns the help of the program, or of one of its commands."""
    context = click.get_current_context().find_root()
    subject: click.Command = registered.program()
    for number, word in enumerate(words):
        commands = subject.commands if isinstance(subject, click.Group) else {}
        if word not in commands:
            from nephoscope.core.reading.sentences import did_you_mean

            path = " ".join(words[: number + 1])
            raise UsageError(
                f"There is no command or topic '{path}'{did_you_mean(word, [*commands, *topics])}.",
                "Run `nephoscope help`.",
            )
        subject = commands[word]
        context = click.Context(subject, parent=context, info_name=word)
    return subject.get_help(context)
