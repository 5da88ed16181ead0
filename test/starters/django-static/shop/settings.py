# As starters of hosting platforms have it: STATIC_ROOT is a setting of production alone.
import os
from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent.parent
SECRET_KEY = "not a secret"
DEBUG = "PRODUCTION" not in os.environ
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "shop.urls"
INSTALLED_APPS = ["django.contrib.staticfiles", "shop"]
MIDDLEWARE = ["whitenoise.middleware.WhiteNoiseMiddleware"]
TEMPLATES = [{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True}]
STATIC_URL = "static/"
if not DEBUG:
    STATIC_ROOT = BASE_DIR / "staticfiles"
    STORAGES = {"staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"}}
