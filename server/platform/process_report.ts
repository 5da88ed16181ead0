// What this process does again and again, written for operators: the process that answers them may be another one.
import os from 'node:os';
import { version } from '../../package.json';
import type { ProcessReport } from '../../core/catalog/installation_reports';
import { backgroundWork, repeatWork } from '../../core/process/background';
import { removeReport, saveReport, sweepReports } from '../../models/base/installation_report';
import type { Platform } from './platform';

const EVERY_MS = 30_000;
/** Of a process that was killed. */
const KEPT_SECONDS = 600;

/** Stops with the returned function. @param role `service`, `web`, `worker`, `ingress` or `dns` */
export function startProcessReport({ database }: Pick<Platform, 'database'>, role: string): () => Promise<void> {
  const place = { machine: os.hostname(), name: `process ${process.pid}` };
  const started_at = new Date(Date.now() - process.uptime() * 1_000).toISOString();
  const work = repeatWork({ name: 'process_report', everyMs: EVERY_MS }, async () => {
    const { pid } = process;
    const memory_bytes = process.memoryUsage.rss();
    const facts: ProcessReport = { role, pid, version, started_at, memory_bytes, work: backgroundWork() };
    await saveReport(database, place, facts);
    await sweepReports(database, 'process', KEPT_SECONDS);
  });
  work.runNow();
  return async () => {
    await work.stop();
    await removeReport(database, place).catch(() => undefined);
  };
}
