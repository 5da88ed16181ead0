// How others check that a program is healthy.
import { nodeText, type Node } from './node';
import { durationSeconds } from './quantities';
import { report, type Application, type ImportRun } from './run';
import { setSetting } from './application';
import { isLikelySecret } from './secrets';

/** Numbers of a health check, each of which has bounds here. */
export interface HealthNumbers {
  interval?: Node | undefined;
  timeout?: Node | undefined;
  threshold?: Node | undefined;
  grace?: Node | undefined;
  unit?: 's' | 'ms';
}

const PATH = /^\/[^\s#]{0,254}$/;

/** A check by HTTP; `tcp` where the path is not one. */
export function setHealthPath(run: ImportRun, application: Application, node: Node | undefined): void {
  const text = nodeText(node);
  if (!node || text === null) return;
  const path = text.startsWith('/') ? text : `/${text}`;
  if (isLikelySecret('', path)) return report(run, node, 'The path has what looks like a secret.', 'health_check.path');
  if (!PATH.test(path)) return report(run, node, 'This is no path.', 'health_check.path');
  setSetting(application, 'health_check', 'type', 'http');
  setSetting(application, 'health_check', 'path', path);
}

/** Intervals and limits. What is out of bounds gets the nearest value. */
export function setHealthNumbers(run: ImportRun, application: Application, numbers: HealthNumbers): void {
  const { unit = 's' } = numbers;
  const interval = read(run, numbers.interval, unit, [5, 300]);
  const timeout = read(run, numbers.timeout, unit, [1, 60]);
  const grace = read(run, numbers.grace, unit, [0, 900]);
  const threshold = read(run, numbers.threshold, 's', [1, 10]);
  // The timeout must be less than the interval: 10 seconds and 5, where only one of them is given.
  const most = (interval ?? 10) - 1;
  const bounded = timeout === null && interval !== null && interval <= 5 ? 4 : timeout;
  if (interval !== null) setSetting(application, 'health_check', 'interval_seconds', interval);
  if (bounded !== null) setSetting(application, 'health_check', 'timeout_seconds', Math.min(bounded, most));
  if (threshold !== null) setSetting(application, 'health_check', 'failure_threshold', threshold);
  if (grace !== null) setSetting(application, 'health_check', 'grace_period_seconds', grace);
}

function read(
  run: ImportRun,
  node: Node | undefined,
  unit: 's' | 'ms',
  [least, most]: readonly [number, number],
): number | null {
  const text = nodeText(node);
  if (!node || text === null) return null;
  const seconds = durationSeconds(text, unit);
  if (seconds !== null) return Math.min(most, Math.max(least, seconds));
  report(run, node, 'This is no duration.', 'health_check');
  return null;
}

/** The path that `curl -f http://localhost:3000/health` asks for; null for other programs. */
export function pathOfCommand(command: string): string | null {
  if (!/\b(curl|wget|http)\b|fetch\(|urlopen|requests\.get/.test(command)) return null;
  const [, path] =
    /https?:\/\/(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1\])(?::\d+)?(\/[^\s'"`)|#]*)?/.exec(command) ?? [];
  return /https?:\/\/(localhost|127\.|0\.0\.0\.0|\[::1\])/.test(command) ? (path ?? '/') : null;
}
