// Daily traffic of a bucket, from the usage log of the gateway (`rgw enable usage log`).
import type { DriverContext } from '../../core/driver';
import type { BucketObserved } from '../../engines/object_storage';
import type { RgwApi } from './api';

interface UsageEntry {
  buckets: { bucket: string; epoch: number; categories: { category: string; bytes_sent: number; ops: number }[] }[];
}

const DAY_MS = 86_400_000;
/** Operations reserved for the platform. */
const OURS = /^(create_bucket|(get|put|delete)_(bucket_\w+|cors|lifecycle))$/;

/** Traffic of yesterday and today (UTC): the log is written late, and a day is complete after its end. */
export async function readRgwTraffic(
  api: RgwApi,
  { uid, bucket }: { uid: string; bucket: string },
  ctx: DriverContext,
): Promise<BucketObserved['days']> {
  const start = `${new Date(Date.now() - DAY_MS).toISOString().slice(0, 10)} 00:00:00`;
  const found = await api.admin<{ entries: UsageEntry[] }>('GET', 'usage', { uid, start, 'show-summary': false }, ctx);
  const days = new Map<string, { egress_bytes: number; requests: number }>();
  for (const hour of (found?.entries ?? []).flatMap(({ buckets }) => buckets)) {
    if (hour.bucket !== bucket) continue;
    const day = new Date(hour.epoch * 1000).toISOString().slice(0, 10);
    const sums = days.get(day) ?? { egress_bytes: 0, requests: 0 };
    for (const { category, bytes_sent, ops } of hour.categories) {
      if (OURS.test(category)) continue;
      sums.egress_bytes += bytes_sent;
      sums.requests += ops;
    }
    days.set(day, sums);
  }
  return [...days].map(([day, sums]) => ({ day, ...sums }));
}
