import os, django, dj_database_url
from django.conf import settings
verified = {'ssl': {'ca': os.environ['DATABASE_CA_FILE']}}
settings.configure(
    DATABASES={
        'default': dj_database_url.config(),
        'verified': {**dj_database_url.config(), 'OPTIONS': verified},
    },
    INSTALLED_APPS=[],
)
django.setup()
from django.db import connections
for name in ['default', 'verified']:
    with connections[name].cursor() as cursor:
        cursor.execute("show session status like 'Ssl_cipher'")
        print('encrypted' if cursor.fetchone()[1] else 'plain', flush=True)
