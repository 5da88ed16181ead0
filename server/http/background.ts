// What this process does again and again, on the admin port: as metrics, and with its last errors for `platform doctor`.
import { Gauge } from 'prom-client';
import { backgroundWork, type WorkState } from '../../core/process/background';
import type { AdminRoute, Metrics } from './admin';

export const BACKGROUND_PATH = '/background';

export const respondWithBackground: AdminRoute = async (_, response) => {
  response.setHeader('content-type', 'application/json').end(JSON.stringify(backgroundWork()));
};

export function addBackgroundWork({ registry }: Metrics): void {
  const add = (name: string, help: string, read: (work: WorkState) => number | null): void =>
    void new Gauge({
      ...{ name: `platform_background_${name}`, help, labelNames: ['work'], registers: [registry] },
      collect() {
        this.reset();
        for (const work of backgroundWork()) this.set({ work: work.name }, read(work) ?? NaN);
      },
    });
  const seconds = (ms: number | null): number | null => ms && ms / 1000;
  add('period_seconds', 'Time between two runs of a repeated work', ({ everyMs }) => everyMs / 1000);
  add('last_run_timestamp_seconds', 'When the last run of a repeated work began', (work) => seconds(work.lastRunAt));
  add('last_success_timestamp_seconds', 'When the last run of a repeated work without an error ended', (work) =>
    seconds(work.lastSuccessAt),
  );
  add('failing', '1 where the last run of a repeated work has failed', (work) => Number(work.lastError !== null));
}
