# A broker and results in Redis: a worker in a thread answers a task.
import os, ssl
from celery import Celery
from celery.contrib.testing.worker import start_worker

tls = {'ssl_cert_reqs': ssl.CERT_REQUIRED}
app = Celery('mails', broker=os.environ['REDIS_URL'], backend=os.environ['REDIS_URL'])
app.conf.update(broker_use_ssl=tls, redis_backend_use_ssl=tls)

@app.task
def send(address):
    return address

with start_worker(app, perform_ping_check=False, shutdown_timeout=20):
    answer = send.delay('ada@example.com').get(timeout=20)
    print('encrypted' if answer == 'ada@example.com' else 'wrong')
