// What every worker runs for observers: the checks of this installation's region, and the messages.
import { openMonitor } from '../../../drivers/monitor/open';
import { openSender } from '../../../drivers/notifier/open';
import type { Sender } from '../../../drivers/notifier';
import { listen } from '../../platform/listener';
import type { Platform } from '../../platform/platform';
import { outboundOf } from '../../platform/outbound';
import { platformMailId, queuePlatformMail } from '../../../models/base/mail_outbox';
import { openWakeSignal } from '../../../jobs/wake_signal';
import { localRegion } from '../../../models/observers/observer/regions';
import { CHECKS } from '../../../models/observers/observer/check_rows';
import { CHECKS_AT_ONCE, startCheckLoop, type CheckCounts } from '../../../jobs/observers/check_loop';
import { openCheckStore } from '../../../jobs/observers/check_store';
import { startDeliveryLoop, type DeliveryParts } from '../../../jobs/observers/delivery_loop';
import { openNetworkGuard, referencesOf } from '../../../jobs/observers/network_guard';

interface Observers {
  counts(): CheckCounts;
  stop(): Promise<void>;
}

const POLL_MS = 200;

export function startObservers(platform: Platform): Observers {
  const { config, database, databaseUrl, secrets, log } = platform;
  const sender = senderOf(platform);
  const hear: DeliveryParts['listen'] = (handlers) => listen(databaseUrl, handlers, log);
  const baseUrl = (): string => platform.config.baseUrl;
  const deliveries = startDeliveryLoop({ database, secrets, log, listen: hear, baseUrl, sender });
  const wakeSignal = openWakeSignal();
  const dueChecks = hear({ due: (table) => (table === CHECKS ? wakeSignal.notify() : undefined) });
  const checks = startCheckLoop({
    ...{ store: openCheckStore(database, secrets, localRegion(config)), wakeSignal, pollMs: POLL_MS, log },
    monitor: openMonitor(outboundOf(config)),
    guard: openNetworkGuard({ references: referencesOf(config.checkReferences) }),
    concurrency: CHECKS_AT_ONCE,
  });
  return {
    counts: () => checks.counts(),
    async stop() {
      await checks.stop();
      await dueChecks.close();
      await deliveries.stop();
      sender.close();
    },
  };
}

function senderOf({ config, database, secrets }: Platform): Sender {
  return openSender({
    outbound: outboundOf(config),
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
}
