"""Django settings; every value that differs between installations comes from the environment."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured

from trailer.domains import default_url_domain
from trailer.keys import load_or_create_keys
from trailer.logs import logging_config
from trailer.secrets import channel_keys

BASE_DIR = Path(__file__).resolve().parent.parent

env = environ.Env()
environ.Env.read_env(BASE_DIR / ".env")

TRAILER_DATA_DIR = Path(env.str("TRAILER_DATA_DIR", default=str(BASE_DIR / "data"))).resolve()
TRAILER_BIND = env.str("TRAILER_BIND", default="127.0.0.1:8000")
TRAILER_PUBLIC_URL = env.str("TRAILER_PUBLIC_URL", default=f"http://{TRAILER_BIND}").rstrip("/")
# Workspaces' URLs under this domain go through this server.
TRAILER_URL_DOMAIN = env.str(
    "TRAILER_URL_DOMAIN", default=default_url_domain(TRAILER_PUBLIC_URL)
).lower()
# Off: users see and use only the hosts on which they were given capabilities.
TRAILER_OPEN_HOSTS = env.bool("TRAILER_OPEN_HOSTS", default=True)
TRAILER_EMBEDDED_AGENT = env.bool("TRAILER_EMBEDDED_AGENT", default=True)
# Where repositories of stacks may be read beside the internet: hosts, networks, http:// hosts and
# file:// folders; see docs/stacks.md.
TRAILER_GIT_ALLOW = env.list("TRAILER_GIT_ALLOW", default=None)
# Where agents may fetch what builds add from beside the internet: hosts and networks; see
# docs/images.md.
TRAILER_BUILD_ALLOW = env.list("TRAILER_BUILD_ALLOW", default=[])
# Seconds that reading a repository may take as a whole.
TRAILER_GIT_TIMEOUT = env.float("TRAILER_GIT_TIMEOUT", default=60)
# Where registries that members name may be beside the internet: hosts and networks; see
# docs/images.md.
TRAILER_REGISTRY_ALLOW = env.list("TRAILER_REGISTRY_ALLOW", default=[])
# Seconds after which an agent gets a new token; 0: it keeps the one it has.
TRAILER_AGENT_TOKEN_AGE = env.float("TRAILER_AGENT_TOKEN_AGE", default=24 * 3600)
# Where the newest seal of the audit is written down outside the database, in the data folder or
# by a whole path; empty: nowhere.
TRAILER_AUDIT_HEAD = env.str("TRAILER_AUDIT_HEAD", default="audit.head")
TRAILER_VERSION = "0.1.0"
# Where hosts get the agent from; empty: this server hands it out.
TRAILER_AGENT_IMAGE = env.str("TRAILER_AGENT_IMAGE", default="").strip()
# What `make run` builds the image that it hands out from; empty: it builds none.
TRAILER_AGENT_BASE = env.str("TRAILER_AGENT_BASE", default="python:3.12-slim").strip()

_keys = load_or_create_keys(
    TRAILER_DATA_DIR,
    secret_key=env.str("SECRET_KEY", default=""),
    fernet_keys=env.list("TRAILER_SECRET_KEYS", default=[]),
)
SECRET_KEY = _keys.secret_key
TRAILER_SECRET_KEYS = _keys.fernet_keys

DEBUG = False
_public = urlsplit(TRAILER_PUBLIC_URL)
ALLOWED_HOSTS = env.list(
    "TRAILER_ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]", _public.hostname or ""]
)
if "*" in ALLOWED_HOSTS:
    raise ImproperlyConfigured(
        "TRAILER_ALLOWED_HOSTS=* would let anybody name this server. List its host names."
    )
CSRF_TRUSTED_ORIGINS = [TRAILER_PUBLIC_URL]
_local_origins = (f"http://{TRAILER_BIND}", f"http://localhost:{TRAILER_BIND.rpartition(':')[2]}")
# Exact origins (scheme, host, port) that may open a WebSocket with a session cookie.
TRAILER_WS_ORIGINS = sorted(
    {
        TRAILER_PUBLIC_URL,
        # Where HTTPS is spoken, a page that came without it is not ours.
        *(() if _public.scheme == "https" else _local_origins),
        *env.list("TRAILER_WS_ORIGINS", default=[]),
    }
)

INSTALLED_APPS = [
    "daphne",
    "unfold",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "channels",
    "rest_framework",
    "django_filters",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_htmx",
    "trailer",
    "trailer.accounts",
    "trailer.access",
    "trailer.audit",
    "trailer.leases",
    "hosts",
    "images",
    "workspaces",
    "workspaces.stacks",
]

MIDDLEWARE = [
    "trailer.counters.CountingMiddleware",
    "trailer.middleware.RequestContextMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "trailer.middleware.ContentSecurityPolicyMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]

ROOT_URLCONF = "trailer.urls"
ASGI_APPLICATION = "trailer.asgi.application"
WSGI_APPLICATION = "trailer.wsgi.application"
AUTH_USER_MODEL = "accounts.User"
LOGIN_URL = "/login/"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/login/"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
            "libraries": {"trailer": "trailer.pages.tags"},
        },
    }
]

DATABASE_URL = env.str("DATABASE_URL", default=f"sqlite:///{TRAILER_DATA_DIR / 'trailer.sqlite3'}")
DATABASES: dict[str, dict[str, Any]] = {"default": environ.Env.db_url_config(DATABASE_URL)}
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    DATABASES["default"]["ENGINE"] = "trailer.sqlite"
    # IMMEDIATE: a read-then-write transaction in the default mode fails at once under load,
    # whatever the busy timeout says.
    DATABASES["default"]["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    }
    # A thread that answers requests keeps its connection: opening one costs more than an answer.
    DATABASES["default"]["CONN_MAX_AGE"] = None
else:
    # Sockets, requests and jobs have threads of their own: a pool bounds their connections.
    DATABASES["default"]["OPTIONS"] = {"pool": {"min_size": 1, "max_size": 8, "timeout": 10}}
    DATABASES["default"]["CONN_HEALTH_CHECKS"] = True

REDIS_URL = env.str("REDIS_URL", default="")
CHANNEL_LAYERS: dict[str, dict[str, Any]] = {
    "default": {
        "BACKEND": "trailer.redis_layer.SignedRedisChannelLayer",
        "CONFIG": {
            "hosts": [REDIS_URL],
            # All sockets of a process share one list there; sessions bound themselves by credit.
            "capacity": 2000,
            "keys": channel_keys(TRAILER_SECRET_KEYS),
        },
    }
    if REDIS_URL
    else {"BACKEND": "trailer.layer.EmbeddedChannelLayer"}
}
CACHES = {
    "default": {
        "BACKEND": "trailer.cache.SteadyRedisCache",
        "LOCATION": REDIS_URL,
        "OPTIONS": {"socket_timeout": 2, "socket_connect_timeout": 2},
    }
    if REDIS_URL
    else {
        "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
        # By the default of 300, whoever tries many names would have counters thrown away.
        "OPTIONS": {"MAX_ENTRIES": 50_000},
    },
    # For what must not be taken from Redis, which more people may write to than the database.
    "process": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": "process"},
}

CELERY_BROKER_URL = REDIS_URL or "memory://localhost/"
CELERY_RESULT_BACKEND = REDIS_URL or "cache+memory://"
# The embedded broker polls; at the default second each job would wait for it.
CELERY_BROKER_TRANSPORT_OPTIONS = {} if REDIS_URL else {"polling_interval": 0.05}
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TIMEZONE = "UTC"

# A failed pull is tried again after so long, then after twice as long, up to five minutes.
TRAILER_PULL_RETRY_SECONDS = env.float("TRAILER_PULL_RETRY_SECONDS", default=10.0)

# Events of a workspace: how many of the newest are kept, and for how many days.
TRAILER_EVENTS_KEPT = env.int("TRAILER_EVENTS_KEPT", default=2000)
TRAILER_EVENTS_DAYS = env.int("TRAILER_EVENTS_DAYS", default=365)

# Stacks: how many are worked on at once, and after how many seconds a failed step is tried again.
TRAILER_STACK_PARALLEL = env.int("TRAILER_STACK_PARALLEL", default=3)
TRAILER_STACK_RETRY_SECONDS = env.list(
    "TRAILER_STACK_RETRY_SECONDS", cast=float, default=[1, 5, 30]
)

PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
    )
]
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = _public.scheme == "https"
if _public.scheme == "https":
    # Such names a page of another host, even of a subdomain, can neither set nor overwrite.
    SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = "__Host-sessionid", "__Host-csrftoken"
# Says that somebody signed in with this browser before; trailer/accounts/places.py.
TRAILER_DEVICE_COOKIE = "__Host-device" if _public.scheme == "https" else "trailer-device"
SESSION_ENGINE = "trailer.accounts.sessions"
SESSION_COOKIE_HTTPONLY = True
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_HSTS_SECONDS = 31_536_000 if _public.scheme == "https" else 0
# Requests a second of one token; 0: no limit (trailer/api/rate.py).
TRAILER_API_RATE = env.int("TRAILER_API_RATE", default=0)
TRAILER_BEHIND_PROXY = env.bool("TRAILER_BEHIND_PROXY", default=False)
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if TRAILER_BEHIND_PROXY else None
X_FRAME_OPTIONS = "DENY"
DATA_UPLOAD_MAX_MEMORY_SIZE = 8 * 1024 * 1024

# Where mail goes out; without it nobody can reset a forgotten password by mail.
_smtp = env.str("TRAILER_SMTP_URL", default="")
EMAIL_HOST_SET = bool(_smtp)
if _smtp:
    vars().update(environ.Env.email_url_config(_smtp))
DEFAULT_FROM_EMAIL = env.str("TRAILER_MAIL_FROM", default=f"trailer@{_public.hostname}")
PASSWORD_RESET_TIMEOUT = 3600

# Single sign-on by OpenID Connect; docs/access.md.
TRAILER_OIDC_ISSUER = env.str("TRAILER_OIDC_ISSUER", default="").rstrip("/")
TRAILER_OIDC_NAME = (
    env.str("TRAILER_OIDC_NAME", default="single sign-on") if TRAILER_OIDC_ISSUER else ""
)

OIDC_RP_CLIENT_ID = env.str("TRAILER_OIDC_CLIENT_ID", default="")
OIDC_RP_CLIENT_SECRET = env.str("TRAILER_OIDC_CLIENT_SECRET", default="")
OIDC_RP_SCOPES = env.str("TRAILER_OIDC_SCOPES", default="openid email profile")
OIDC_RP_SIGN_ALGO = env.str("TRAILER_OIDC_SIGN_ALGO", default="RS256")
OIDC_USE_PKCE = True
OIDC_TIMEOUT = 10
OIDC_AUTHENTICATION_CALLBACK_URL = "sso-callback"
LOGIN_REDIRECT_URL_FAILURE = "/login/?sso=failed"
# The provider's group -> ours: "engineers=lab,ops=operators".
TRAILER_OIDC_GROUPS = env.dict("TRAILER_OIDC_GROUPS", default={})
TRAILER_OIDC_GROUPS_CLAIM = env.str("TRAILER_OIDC_GROUPS_CLAIM", default="groups")
TRAILER_OIDC_ADMIN_GROUP = env.str("TRAILER_OIDC_ADMIN_GROUP", default="")
TRAILER_OIDC_LINK_BY_MAIL = env.bool("TRAILER_OIDC_LINK_BY_MAIL", default=False)
AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    *(["trailer.accounts.oidc.SingleSignOn"] if TRAILER_OIDC_ISSUER else []),
]

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_I18N = False
USE_TZ = True

STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
FAVICON = f"{STATIC_URL}img/favicon.svg"
# Only production collects; one process serves its files straight from the app folders.
STATIC_ROOT = env.str("TRAILER_STATIC_ROOT", default="") or None
WHITENOISE_USE_FINDERS = True

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "trailer.api.authentication.TokenAuthentication",
        "trailer.api.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["trailer.api.permissions.SignedInWithScope"],
    "DEFAULT_PAGINATION_CLASS": "trailer.api.pagination.PagePagination",
    "DEFAULT_FILTER_BACKENDS": [
        "django_filters.rest_framework.DjangoFilterBackend",
        "rest_framework.filters.SearchFilter",
        "rest_framework.filters.OrderingFilter",
    ],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["trailer.api.parsers.StrictJSONParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "trailer.api.exceptions.handle",
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Trailer",
    "DESCRIPTION": "Container workspaces and git-driven stacks on a fleet of Docker hosts.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": ["rest_framework.permissions.IsAuthenticated"],
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_NAME_OVERRIDES": {
        "HostStatus": "hosts.choices.HostStatus",
        "ResourceStatus": "hosts.choices.ResourceStatus",
        "VolumeKind": "hosts.choices.VolumeKind",
        "BuildStatus": "images.choices.BuildStatus",
        "ImageKind": "images.choices.ImageKind",
        "WorkspaceStatus": "workspaces.choices.WorkspaceStatus",
        "StackStatus": "workspaces.stacks.choices.StackStatus",
        "SyncTrigger": "workspaces.stacks.choices.Trigger",
        "SyncOutcome": "workspaces.stacks.choices.SyncOutcome",
    },
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "trailer.api.schema.add_errors",
    ],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
}
UNFOLD = {
    "SITE_TITLE": "Trailer",
    "SITE_HEADER": "Trailer",
    "SHOW_HISTORY": True,
    "SITE_FAVICONS": [{"rel": "icon", "type": "image/svg+xml", "href": FAVICON}],
    "LOGIN": {"form": "trailer.accounts.forms.AdminLoginForm"},
}

LOGGING = logging_config(
    level=env.str("TRAILER_LOG_LEVEL", default="INFO"),
    secrets=(
        *(SECRET_KEY, *TRAILER_SECRET_KEYS, OIDC_RP_CLIENT_SECRET),
        *(unquote(urlsplit(url).password or "") for url in (DATABASE_URL, REDIS_URL, _smtp)),
    ),
)
LOGGING_CONFIG = "logging.config.dictConfig"
