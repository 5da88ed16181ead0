// Without a sandbox, users of tenants reach their files through the directories of the host.
import type { Config } from '../../core/config';
import { passageCommand } from '../../core/directory';
import { driverContext } from '../../core/driver';
import { setupCommand } from '../../core/catalog/setup_command';
import type { RuntimeDriver } from '../../drivers/runtime';
import type { Platform } from '../platform/platform';

const FINGERPRINT_MS = 5_000;

/**
 * Says at the start what each deployment would fail for: a folder above the directories of the platform, which are open
 * themselves, is closed to the users that tenants run as.
 */
export async function warnOfClosedFolders(
  { config, log }: Pick<Platform, 'config' | 'log'>,
  runtime: RuntimeDriver,
): Promise<void> {
  const { sandbox, users } = (await runtime.fingerprint(driverContext(FINGERPRINT_MS))).facts;
  if (sandbox !== 'none' || users === 'own') return;
  for (const { directory, command } of closedDirectories(config))
    log.warn(
      { directory, command },
      `Applications cannot be deployed: they run as users of their own, who cannot reach ${directory}. Let other ` +
        `users enter the folders above it (${command}), or install bubblewrap (${setupCommand()}).`,
    );
}

function closedDirectories({ runtimeDir, volumeDir, databaseDir }: Config): { directory: string; command: string }[] {
  const commands = new Map<string, string>();
  for (const directory of [runtimeDir, volumeDir, databaseDir]) {
    const command = passageCommand(directory);
    if (command !== null && !commands.has(command)) commands.set(command, directory);
  }
  return [...commands].map(([command, directory]) => ({ directory, command }));
}
