// The service as systemd sees it.
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { promisify } from 'node:util';
import { argumentsOf } from '../../core/process/processes';
import { SERVICE_UNIT } from '../setup/service_unit';
import { CommandError } from '../command_error';

const execute = promisify(execFile);
export const UPGRADE_UNIT = 'platform-upgrade.service';

export interface ServiceState {
  active: string;
  /** 0: it does not run. */
  pid: number;
  /** How often systemd has started it again by itself. */
  restarts: number;
  /** What it was started with: the program, and files of its release. */
  command: string[];
}

/** @throws CommandError */
export function requireSystemd(): void {
  if (existsSync('/run/systemd/system')) return;
  throw new CommandError(
    'systemd does not run here, so nothing could restart the service: stop it, run install.sh of the newer release, ' +
      'and start it again',
  );
}

/** @throws CommandError with what systemctl says */
export async function systemctl(...words: string[]): Promise<string> {
  try {
    return (await execute('systemctl', words)).stdout;
  } catch (error) {
    const { stderr, message } = error as Error & { stderr?: string };
    throw new CommandError(`systemctl ${words.join(' ')}: ${(stderr?.trim() || message).split('\n')[0]}`);
  }
}

export function stopService(): Promise<string> {
  return systemctl('stop', SERVICE_UNIT);
}

export async function serviceState(): Promise<ServiceState> {
  const text = await systemctl('show', SERVICE_UNIT, '--property=ActiveState,MainPID,NRestarts');
  const values = new Map(text.split('\n').map((line) => line.split('=') as [string, string]));
  const pid = Number(values.get('MainPID') ?? 0);
  return {
    active: values.get('ActiveState') ?? 'unknown',
    pid,
    restarts: Number(values.get('NRestarts') ?? 0),
    command: argumentsOf(pid),
  };
}

/** The last error that the service has printed, for the reason of a start that failed; empty where there is none. */
export async function lastLine(): Promise<string> {
  const words = ['--unit', SERVICE_UNIT, '--lines', '20', '--output', 'cat', '--no-pager'];
  const { stdout } = await execute('journalctl', words).catch(() => ({ stdout: '' }));
  const lines = stdout.trim().split('\n');
  return lines.findLast((line) => /^(?:platform-api|\w*Error): /.test(line)) ?? '';
}
