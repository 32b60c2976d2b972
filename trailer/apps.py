"""App registration of the project itself, for its management commands."""

from django.apps import AppConfig

from trailer.logs import threads_end_in_the_log


class TrailerConfig(AppConfig):
    name = "trailer"
    verbose_name = "Trailer"

    def ready(self) -> None:
        threads_end_in_the_log()
