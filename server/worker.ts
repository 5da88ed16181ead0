// npm run worker: the loop in a process of its own, beside the API and as many others as are wanted.
import { runProgram } from './program';
import { startWorker } from './work';

runProgram('npm run worker', async (platform) => {
  const worker = await startWorker(platform, { whenTaken: 'stand_by' });
  platform.log.info('the worker is ready');
  return { close: () => worker.stop() };
});
