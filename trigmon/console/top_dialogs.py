"""What lies over the console for a while: a text to read, a question to answer."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Footer, Input, Static


class TextScreen(ModalScreen[None]):
    """A text, such as a run's output, which may be longer than the screen; it begins at its end where it is a log."""

    CSS = """
    TextScreen #title { text-style: bold; height: auto; padding: 0 0 1 0; }
    TextScreen #text { height: auto; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss", "back"),
        Binding("up,k", "scroll('up')", "up", show=False),
        Binding("down,j", "scroll('down')", "down", show=False),
        Binding("pageup,b", "scroll('page_up')", "page up"),
        Binding("pagedown,space", "scroll('page_down')", "page down"),
        Binding("home", "scroll('home')", "begin"),
        Binding("end", "scroll('end')", "end"),
    ]

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self._heading = title
        self.text = text

    def compose(self) -> ComposeResult:
        """Yields the title, the text and the keys."""
        yield Static(self._heading, id="title", markup=False)
        with VerticalScroll(id="page"):
            yield Static(self.text, id="text", markup=False)
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Makes the text what the keys scroll."""
        self.query_one("#page").focus()

    def action_scroll(self, where: str) -> None:
        """Scrolls the text."""
        getattr(self.query_one("#page"), f"scroll_{where}")(animate=False)


class QuestionScreen(ModalScreen[str | None]):
    """A question; its result is the answer, or None where the user left it. Without ``wants_text`` enter is yes."""

    CSS = """
    QuestionScreen { align: center middle; }
    QuestionScreen Vertical { width: 80; height: auto; border: round $primary; padding: 1 2; background: $surface; }
    QuestionScreen Static { height: auto; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "no"),
        Binding("enter", "yes", "yes"),
    ]

    def __init__(self, question: str, *, wants_text: bool) -> None:
        super().__init__()
        self.question = question
        self._wants_text = wants_text

    def compose(self) -> ComposeResult:
        """Yields the question, and where the answer is written."""
        with Vertical():
            yield Static(self.question, markup=False)
            if self._wants_text:
                yield Input(max_length=200)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Ends with the answer."""
        self.dismiss(event.value)

    def action_yes(self) -> None:
        """Ends with a blank answer."""
        self.dismiss("")

    def action_leave(self) -> None:
        """Ends without an answer."""
        self.dismiss(None)
