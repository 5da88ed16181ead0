// Masked copies. The backup is restored into a server that only the platform can connect to; the rules are applied
// there; then the content moves into an empty server, as in an upgrade. So no page, no write-ahead log, no statistics
// and no dead row of before is in the files of the copy (docs/decisions/0251). Until that server is in place there is
// no other one: a call that was killed begins anew.
import { randomBytes } from 'node:crypto';
import type { MaskRule } from '../../../../core/mask_rules';
import type { DriverContext } from '../../../../core/driver';
import type { BackupOfServer } from '../../../hosted_server';
import { readNote, removeServerTree, writeNote } from '../../../hosted_server/server_directory';
import { replaceData } from '../../../hosted_server/replacement';
import { nextDisk } from '../../disk_size';
import type { MaskReport } from '../../masks/mask';
import { restore, stagingDirectoryOf, stopAll, verifyData } from '../backups/restore';
import { firstTimeline } from '../backups/timelines';
import type { Cluster } from '../cluster';
import { copyContent, toolsOf } from '../upgrades/upgrade';
import { contentError } from '../upgrades/content';
import { applyMask } from './apply';

/** Errors have values of rows in their details. */
const SILENT = {
  ...{ log_min_messages: 'fatal', log_min_error_statement: 'panic', log_min_duration_statement: -1 },
  log_lock_waits: 'off',
};

/**
 * `cluster.spec.running` is false: nothing is started that clients reach.
 * @throws DriverError invalid with the rule that does not fit
 */
export async function copyMasked(
  cluster: Cluster,
  from: BackupOfServer,
  rules: readonly MaskRule[],
  ctx: DriverContext,
): Promise<MaskReport> {
  const { engine, serverDirectory, spec, programs } = cluster;
  const done = await readNote<MaskReport>(serverDirectory, 'masked');
  if (done !== null) return done;
  const bin = toolsOf(programs, programs);
  const attempt = randomBytes(6).toString('hex');
  await restore(cluster, { ...from, id: attempt, until: null }, ctx);
  const database = spec.database_name ?? 'postgres';
  let report: MaskReport = { unmasked: [] };
  await replaceData(
    serverDirectory,
    {
      key: `mask-${attempt}`,
      disk: await nextDisk(engine, serverDirectory, spec),
      fill: (temporary) => {
        const change = async (): Promise<void> => {
          report = await applyMask(cluster, database, rules, ctx);
        };
        const to = { temporary, bin, change, settings: SILENT, purpose: 'a masked copy' } as const;
        return copyContent(cluster, cluster, to, ctx).catch((error: unknown) => {
          throw contentError(error, 'copy');
        });
      },
      stop: () => stopAll(cluster, ctx),
      verify: async () => {
        await verifyData(cluster, ctx);
        await writeNote(serverDirectory, 'timelines', firstTimeline);
      },
      rollBack: () => Promise.resolve(),
    },
    ctx,
  ).finally(() => ctx.signal.aborted || stopAll(cluster, ctx));
  await removeServerTree(stagingDirectoryOf(serverDirectory).path, ctx);
  await writeNote(serverDirectory, 'masked', report);
  return report;
}
