// How long schedules take that are all due in the same second, and the slowest answer of the API meanwhile. The workers
// are in the process of the API, as in a small installation; the runs stay queued.
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { openTestServer } from '../../../test/support/databases/database';
import {
  decidedCount,
  makeManySchedules,
  SCHEDULES_PER_APPLICATION,
  startScheduleWorker,
  WITHOUT_QUOTAS,
} from '../../../test/support/runs/many_schedules';
import { startService, type TestService } from '../../../test/support/service';
import { median } from '../measure';
import { printLine } from '../run';

const ANSWER_TARGET_MS = 2_000;
const WORKERS = 2;
const PAUSE_MS = 50;

/** @param count of schedules, rounded to whole applications */
export async function measureSchedules(count: number): Promise<void> {
  await openTestServer();
  const service = await startService({ settings: WITHOUT_QUOTAS });
  try {
    await measure(service, Math.ceil(count / SCHEDULES_PER_APPLICATION));
  } finally {
    await service.close();
  }
}

async function measure(service: TestService, applications: number): Promise<void> {
  const count = applications * SCHEDULES_PER_APPLICATION;
  await makeManySchedules(service, applications);
  const stalls = monitorEventLoopDelay({ resolution: 5 });
  stalls.enable();
  const begun = performance.now();
  const loops = Array.from({ length: WORKERS }, () => startScheduleWorker(service));
  const answers: number[] = [];
  while ((await decidedCount(service)) < count) {
    const asked = performance.now();
    await service.call('GET', '/v2/applications?limit=20');
    answers.push(performance.now() - asked);
    await sleep(PAUSE_MS);
  }
  const seconds = (performance.now() - begun) / 1000;
  for (const loop of loops) await loop.stop();
  const slowest = Math.max(...answers);
  printLine(`${count} schedules of the same second, decided in ${seconds.toFixed(1)} s by ${WORKERS} workers\n`);
  printLine('| ms | median | most |\n|---|--:|--:|');
  const ofAnswers = [median(answers), slowest].map(whole).join(' | ');
  printLine(`| answer to a list of applications (${answers.length}) | ${ofAnswers} |`);
  printLine(`| delay of the event loop | ${[stalls.percentile(50) / 1e6, stalls.max / 1e6].map(whole).join(' | ')} |`);
  const verdict = slowest <= ANSWER_TARGET_MS ? 'met' : 'MISSED';
  printLine(`\nThe slowest answer takes ${whole(slowest)} ms, ≤ ${ANSWER_TARGET_MS}: ${verdict}`);
}

function whole(ms: number): string {
  return ms.toFixed(0);
}
