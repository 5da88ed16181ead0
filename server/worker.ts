// npm run worker: the loop in a separate process, beside the API and any number of other workers.
import './threads';
import { createRequire } from 'node:module';
import type { Platform } from './platform/platform';
import { runProgram, type Running } from './program';
import type * as OfLiveness from './platform/liveness';
import type * as OfReport from './platform/process_report';
import type * as OfWork from './start_worker';

const load = createRequire(__filename);

const liveness = (): typeof OfLiveness => load('./platform/liveness') as typeof OfLiveness;

const start = async (platform: Platform): Promise<Running> => {
  const { startWorker } = load('./start_worker') as typeof OfWork;
  const worker = await startWorker(platform, { whenTaken: 'stand_by' });
  const { startProcessReport } = load('./platform/process_report') as typeof OfReport;
  const stopReport = startProcessReport(platform, 'worker');
  const stopLiveness = liveness().startLiveness(platform.config, () => worker.silentMs());
  platform.log.info('the worker is ready');
  return { close: () => Promise.all([stopLiveness(), stopReport(), worker.stop()]).then(() => undefined) };
};

runProgram(
  'npm run worker',
  start,
  () => {},
  (config) => liveness().forgetLiveness(config),
);
