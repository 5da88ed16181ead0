// The unit of systemd that runs the service, and its restart.
import { existsSync } from 'node:fs';
import { run } from '../../core/process/command';
import { driverContext } from '../../core/driver';
import { SetupError } from './setup_error';

export interface ServiceControl {
  /** Resolves when the restart has begun. @throws SetupError */
  restart(): Promise<void>;
}

export const SERVICE_UNIT = 'platform.service';
const UNIT_FILE = `/etc/systemd/system/${SERVICE_UNIT}`;
const WITHIN_MS = 90_000;

/** null where systemd does not run the service. */
export function serviceUnit(): ServiceControl | null {
  if (!existsSync('/run/systemd/system') || !existsSync(UNIT_FILE)) return null;
  return { restart: restartService };
}

/** @throws SetupError */
export async function restartService(): Promise<void> {
  try {
    // A unit that failed too often in a row would not be started.
    await run('systemctl', ['reset-failed', SERVICE_UNIT], driverContext(WITHIN_MS)).catch(() => undefined);
    await run('systemctl', ['restart', SERVICE_UNIT], driverContext(WITHIN_MS));
  } catch {
    throw new SetupError(`The service could not be restarted. Its log says why: journalctl -u ${SERVICE_UNIT} -n 20`);
  }
}
