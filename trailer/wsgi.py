"""WSGI entry point: REST and pages in production."""

import os

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "trailer.settings")

application = get_wsgi_application()

if not settings.REDIS_URL:
    raise ImproperlyConfigured(
        "Web processes beside others need Redis, or half of them would miss every change: set "
        "REDIS_URL. For one process alone use `manage.py standalone`."
    )
