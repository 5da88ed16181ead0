// Combined state of a commit's checks: one failed check fails them all, one running check keeps them pending.
import type { GitChecks } from '../../core/protocols/git_provider';

export interface Check {
  name: string;
  state: 'pending' | 'success' | 'failure';
}

const NAMES_MAX = 10;

export function checksOf(checks: readonly Check[]): GitChecks {
  const named = (state: Check['state']): string[] =>
    checks.filter((check) => check.state === state).map(({ name }) => name.slice(0, 100));
  const [failed, pending] = [named('failure'), named('pending')];
  const state = failed.length ? 'failure' : pending.length ? 'pending' : checks.length ? 'success' : 'none';
  return { state, failed: failed.slice(0, NAMES_MAX), pending: pending.slice(0, NAMES_MAX) };
}
