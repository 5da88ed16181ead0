const http = require('node:http');
const { Queue, QueueEvents } = require('bullmq');
const IORedis = require('ioredis');

const connection = new IORedis(process.env.REDIS_URL, { maxRetriesPerRequest: null });
const queue = new Queue('sums', { connection });
const events = new QueueEvents('sums', { connection: connection.duplicate() });

http
  .createServer(async (request, response) => {
    const { searchParams, pathname } = new URL(request.url, 'http://localhost');
    if (pathname !== '/sum') return response.end('A queue on Redis');
    const job = await queue.add('sum', { numbers: searchParams.get('of').split(',').map(Number) });
    response.end(String(await job.waitUntilFinished(events, 20_000)));
  })
  .listen(process.env.PORT || 3000);
