import os, sqlalchemy
engine = sqlalchemy.create_engine(os.environ['DATABASE_URL'].replace('postgresql://', 'postgresql+psycopg2://', 1))
with engine.connect() as connection:
    ssl = connection.execute(sqlalchemy.text('select ssl from pg_stat_ssl where pid = pg_backend_pid()')).scalar()
    print('encrypted' if ssl else 'plain')
