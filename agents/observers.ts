// What every worker runs for observers: the checks of this installation's region, and the messages.
import { parseHostPort } from '../core/addresses';
import { openMonitor } from '../drivers/monitor';
import { openSender } from '../drivers/notifier';
import { listen } from '../platform/listener';
import type { Platform } from '../platform/platform';
import { outboundOf } from '../platform/probes';
import { platformMailId, queuePlatformMail } from '../models/mail/outbox';
import { localRegion } from '../models/observer/regions';
import { startCheckLoop, type CheckCounts } from './check_loop';
import { startDeliveryLoop } from './delivery_loop';
import { openNetworkGuard } from './network_guard';

export interface Observers {
  counts(): CheckCounts;
  stop(): Promise<void>;
}

export function startObservers(platform: Platform): Observers {
  const { config, database, databaseUrl, secrets, log } = platform;
  const outbound = outboundOf(config);
  const sender = openSender({
    outbound,
    pagerdutyUrl: config.pagerdutyUrl,
    smtpUrl: config.smtpUrl,
    smtpFrom: config.smtpFrom ?? config.ownerEmail,
    caFile: config.outboundCaFile,
    queue: config.smtpPorts.length
      ? (id, addresses, mail) => {
          const recipients = [...addresses];
          return queuePlatformMail(database, secrets, { id: platformMailId(id), recipients, mail });
        }
      : null,
  });
  const parts = {
    database,
    secrets,
    log,
    listen: (handlers: Parameters<typeof listen>[1]) => listen(databaseUrl, handlers, log),
  };
  const deliveries = startDeliveryLoop({ ...parts, baseUrl: () => platform.config.baseUrl, sender });
  const checks = startCheckLoop({
    ...parts,
    monitor: openMonitor(outbound),
    guard: openNetworkGuard({ references: referencesOf(config.checkReferences) }),
    region: localRegion(config),
    concurrency: config.checkConcurrency,
  });
  return {
    counts: () => checks.counts(),
    async stop() {
      await checks.stop();
      await deliveries.stop();
      sender.close();
    },
  };
}

function referencesOf(text: string | null): { host: string; port: number }[] {
  return (text ?? '').split(',').flatMap((entry) => parseHostPort(entry.trim()) ?? []);
}
