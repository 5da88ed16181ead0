// A state as a dot and its word: colour is never the only difference.
import type { ComponentChildren } from 'preact';

type Tone = 'good' | 'busy' | 'bad' | 'calm';

const TONES: Record<string, Tone> = {
  ...tones('good', 'running', 'active', 'available', 'verified', 'issued', 'completed', 'ready', 'healthy', 'live'),
  ...tones('good', 'succeeded', 'ok', 'pass', 'delegated', 'resolved', 'delivered', 'in_use', 'supported'),
  ...tones('busy', 'deploying', 'building', 'queued', 'starting', 'stopping', 'restarting', 'scaling', 'provisioning'),
  ...tones('good', 'done', 'approved', 'enabled', 'proven'),
  ...tones('busy', 'under_way', 'enabling', 'disabling'),
  ...tones('busy', 'updating', 'upgrading', 'restoring', 'pending', 'connecting', 'waiting', 'resizing', 'promoting'),
  ...tones('bad', 'crashed', 'failed', 'unhealthy', 'suspended', 'timed_out', 'alerting', 'error', 'refused', 'paused'),
  ...tones('bad', 'open', 'fail', 'not_delegated', 'elsewhere', 'partial', 'moved'),
};
const WORDS: Record<string, string> = { new: 'not deployed' };

export function Status({ value, title }: { value: string; title?: string | null | undefined }) {
  return (
    <span class={`status ${TONES[value] ?? 'calm'}`} title={title ?? undefined}>
      {WORDS[value] ?? value.replace(/_/g, ' ')}
    </span>
  );
}

interface StatusReasonProps {
  value: string;
  /** Why it is so, or what to do. */
  reason?: string | null | undefined;
  /** What else belongs to the state, such as when it was found. */
  children?: ComponentChildren;
}

/** A state, and its reason on a line of its own. */
export function StatusReason({ value, reason, children }: StatusReasonProps) {
  return (
    <>
      <Status value={value} />
      {children && <span class="faint"> · {children}</span>}
      {reason && <small class="reason">{reason}</small>}
    </>
  );
}

function tones(tone: Tone, ...values: string[]): Record<string, Tone> {
  return Object.fromEntries(values.map((value) => [value, tone]));
}

/** States that end by themselves: the page asks again while there is one. */
export function isUnsettled(value: string | undefined): boolean {
  return value !== undefined && TONES[value] === 'busy';
}
