"""WSGI entry point: REST and pages in production."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "trailer.settings")

application = get_wsgi_application()
