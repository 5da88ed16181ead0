// Webhooks of providers: signature and event. The payload is only a hint: heads, states and authors are read from the
// repository and the provider afterwards, so replays and reordering are harmless.
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { GitProviderName } from '../../core/protocols/git_provider';

export type HookEvent =
  | { kind: 'push'; branch: string | null }
  | { kind: 'pull_request'; number: number }
  /** A check of a commit has completed, or its status was set. */
  | { kind: 'checks' }
  /** Not relevant to the platform. */
  | { kind: 'other' };

/** Compares the signature of the received bytes, or GitLab's token, in constant time. */
export function isSigned(
  provider: GitProviderName,
  headers: IncomingHttpHeaders,
  body: Buffer,
  secret: string,
): boolean {
  if (provider === 'gitlab') return isEqual(headers['x-gitlab-token'], secret);
  const digest = createHmac('sha256', secret).update(body).digest('hex');
  if (provider === 'gitea') return isEqual(headers['x-gitea-signature'], digest);
  const name = provider === 'github' ? 'x-hub-signature-256' : 'x-hub-signature';
  return isEqual(headers[name], `sha256=${digest}`);
}

/** @param body parsed, of any shape */
export function readEvent(headers: IncomingHttpHeaders, body: unknown): HookEvent {
  const payload = (typeof body === 'object' && body !== null ? body : {}) as Payload;
  const named = (name: string): string => (typeof headers[name] === 'string' ? headers[name] : '');
  if (named('x-event-key')) return bitbucketEvent(named('x-event-key'), payload);
  if (named('x-gitlab-event') || payload.object_kind !== undefined) return gitlabEvent(payload);
  return githubEvent(named('x-gitea-event') || named('x-github-event') || named('x-forgejo-event'), payload);
}

/* oxlint-disable typescript/no-explicit-any -- untrusted input */
type Payload = Record<string, any>;

const NOTHING: HookEvent = { kind: 'other' };
const CHECK_EVENTS = new Set(['status', 'check_run', 'check_suite', 'workflow_run']);

/** GitHub, and Gitea, which uses the same names. */
function githubEvent(event: string, payload: Payload): HookEvent {
  if (event === 'push') return push(payload.ref);
  if (event.startsWith('pull_request')) return pullRequest(payload.number ?? payload.pull_request?.number);
  return CHECK_EVENTS.has(event) ? { kind: 'checks' } : NOTHING;
}

function gitlabEvent(payload: Payload): HookEvent {
  if (payload.object_kind === 'push') return push(payload.ref);
  if (payload.object_kind === 'merge_request') return pullRequest(payload.object_attributes?.iid);
  return payload.object_kind === 'pipeline' || payload.object_kind === 'build' ? { kind: 'checks' } : NOTHING;
}

function bitbucketEvent(key: string, payload: Payload): HookEvent {
  if (key === 'repo:push') {
    const changes: Payload[] = Array.isArray(payload.push?.changes) ? payload.push.changes : [];
    const [branch, ...others] = changes.flatMap((change) => (change?.new?.type === 'branch' ? [change.new.name] : []));
    if (branch === undefined) return NOTHING;
    return { kind: 'push', branch: others.length || typeof branch !== 'string' ? null : branch };
  }
  if (key.startsWith('pullrequest:')) return pullRequest(payload.pullrequest?.id);
  return key.startsWith('repo:commit_status') ? { kind: 'checks' } : NOTHING;
}

function push(ref: unknown): HookEvent {
  const branch = typeof ref === 'string' ? /^refs\/heads\/(.+)$/.exec(ref)?.[1] : undefined;
  return branch === undefined ? NOTHING : { kind: 'push', branch };
}

function pullRequest(number: unknown): HookEvent {
  return Number.isSafeInteger(number) && (number as number) > 0 && (number as number) < 2 ** 31
    ? { kind: 'pull_request', number: number as number }
    : NOTHING;
}

function isEqual(given: string | string[] | undefined, wanted: string): boolean {
  if (typeof given !== 'string') return false;
  const [one, other] = [Buffer.from(given), Buffer.from(wanted)];
  return one.length === other.length && timingSafeEqual(one, other);
}
