import { existsSync } from 'node:fs';
import { named } from '../../db/statement';
import { reencryptFiles } from '../../engines/object_storage';
import { reencryptColumns, type Reencrypted } from '../../models/base/reencrypt';
import { encryptedFiles } from '../../models/object_storage/bucket_object/encrypted_files';
import type { Platform } from '../platform/platform';
import { CommandError } from '../command_error';
import { type Command } from './command';
import { withPlatform } from './open';
import { noteOfInstallation } from './terminal_activity';

export const commands: Command[] = [
  {
    name: 'secrets reencrypt',
    summary: 'Encrypt all stored secrets with the first key of PLATFORM_SECRET_KEY, after a new one was put there.',
    run: () =>
      withPlatform(async (platform) => {
        const rows = await reencryptAll(platform);
        await noteOfInstallation(platform.database, 'installation.secrets_reencrypted', null);
        return { rows: rows.map((row) => ({ ...row })), ok: rows.every(({ unreadable }) => unreadable === 0) };
      }),
  },
];

const HAS_OBJECTS = named('select 1 from bucket_objects limit 1');

const PASSES_MAX = 5;

/** Until a pass finds nothing: a value may be copied, while the service runs, to a place that was passed before. */
async function reencryptAll({ config, database, secrets }: Platform): Promise<Reencrypted[]> {
  if (!existsSync(config.s3Dir) && (await database.query(HAS_OBJECTS, [])).length)
    throw new CommandError(`the files of objects are not in ${config.s3Dir}: call it where the data directory is`);
  const places = new Map<string, Reencrypted>();
  for (let pass = 1, isDone = false; !isDone; pass += 1) {
    if (pass > PASSES_MAX)
      throw new CommandError(
        'a process still encrypts with another key: restart all with the new list, then call again',
      );
    const files = await reencryptFiles(config.s3Dir, secrets, encryptedFiles(database));
    const found = [...(await reencryptColumns(database, secrets)), { place: 'keys of encrypted objects', ...files }];
    isDone = found.every(({ reencrypted }) => reencrypted === 0);
    for (const { place, reencrypted, unreadable } of found) {
      const before = places.get(place)?.reencrypted ?? 0;
      places.set(place, { place, reencrypted: before + reencrypted, unreadable });
    }
  }
  return [...places.values()].filter(({ reencrypted, unreadable }) => reencrypted + unreadable > 0);
}
