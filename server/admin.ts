// Metrics for Prometheus, on a port of their own that only this machine reaches.
import { createServer } from 'node:http';
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import { StartupError } from '../core/startup_error';
import { reasonOf } from './http';

export interface Metrics {
  registry: Registry;
  /** One finished request: operation id or null, status, seconds. */
  observe(operation: string | null, status: number, seconds: number): void;
}

export function openMetrics(workerLag: () => Promise<number>): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const requests = new Counter({ name: 'platform_requests_total', help: 'Finished requests', labelNames: ['operation', 'status'], registers: [registry] });
  const seconds = new Histogram({
    name: 'platform_request_seconds',
    help: 'Time to answer',
    labelNames: ['operation'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers: [registry],
  });
  new Gauge({
    name: 'platform_worker_lag_seconds',
    help: 'Age of the oldest work that is due and that nobody has taken',
    registers: [registry],
    async collect() {
      this.set(await workerLag().catch(() => NaN));
    },
  });
  return {
    registry,
    observe(operation, status, time) {
      const name = operation ?? 'none';
      requests.inc({ operation: name, status: String(status) });
      seconds.observe({ operation: name }, time);
    },
  };
}

/** Serves /metrics. @throws StartupError for a taken port */
export async function listenAdmin(config: { adminHost: string; adminPort: number }, metrics: Metrics): Promise<{ port: number; close(): Promise<void> }> {
  const server = createServer((request, response) => {
    if (request.url !== '/metrics') return void response.writeHead(404).end();
    metrics.registry.metrics().then(
      (text) => response.writeHead(200, { 'Content-Type': metrics.registry.contentType }).end(text),
      () => response.writeHead(500).end(),
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(new StartupError(`can't listen on ${config.adminHost}:${config.adminPort} (ADMIN_PORT): ${reasonOf(error)}`)));
    server.listen(config.adminPort, config.adminHost, resolve);
  });
  const { port } = server.address() as { port: number };
  return { port, close: () => new Promise((resolve) => (server.close(() => resolve()), server.closeAllConnections())) };
}
