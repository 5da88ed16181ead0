import os, django, dj_database_url
from django.conf import settings
settings.configure(DATABASES={'default': dj_database_url.config()}, INSTALLED_APPS=[])
django.setup()
from django.db import connection
with connection.cursor() as cursor:
    cursor.execute('select ssl from pg_stat_ssl where pid = pg_backend_pid()')
    print('encrypted' if cursor.fetchone()[0] else 'plain')
