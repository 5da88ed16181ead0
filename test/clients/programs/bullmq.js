const { Queue, Worker } = require('bullmq');
const connection = { url: process.env.REDIS_URL, maxRetriesPerRequest: null };
const queue = new Queue('mails', { connection });
const worker = new Worker('mails', async (job) => job.data.to, { connection });
worker.on('completed', async (job) => {
  console.log(job.returnvalue === 'ada@example.com' ? 'encrypted' : 'wrong');
  await worker.close();
  await queue.close();
});
queue.add('mail', { to: 'ada@example.com' });
