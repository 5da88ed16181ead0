// npm run worker: the loop in a separate process, beside the API and any number of other workers.
import './threads';
import { createRequire } from 'node:module';
import { runProgram } from './program';
import type * as OfReport from './platform/process_report';
import type * as OfWork from './start_worker';

const load = createRequire(__filename);

runProgram('npm run worker', async (platform) => {
  const { startWorker } = load('./start_worker') as typeof OfWork;
  const worker = await startWorker(platform, { whenTaken: 'stand_by' });
  const { startProcessReport } = load('./platform/process_report') as typeof OfReport;
  const stopReport = startProcessReport(platform, 'worker');
  platform.log.info('the worker is ready');
  return { close: () => Promise.all([stopReport(), worker.stop()]).then(() => undefined) };
});
