// Reports about mail: delivery status (RFC 3464) and complaints (RFC 5965). Only their machine-readable parts are
// evaluated; replies of people and vacation responders are ignored.
import type { Readable } from 'node:stream';
import { mailsplit } from './message/mailsplit';

export interface MailReport {
  kind: 'bounce' | 'complaint' | 'none';
  /** Permanent failures in a bounce, with their diagnostics. */
  failures: { status: string; diagnostic: string }[];
  /** References found in the quoted message and in the report fields. */
  references: string[];
}

const PART_BYTES_MAX = 64 * 1024;
const NODES_MAX = 50;
const REFERENCE = /\bb-[0-9a-z]{26}-\d{1,5}-[0-9a-f]{16}\b/gi;
const REFERENCES_MAX = 5;

interface Part {
  type: string;
  text: string;
}

/** Reads the stream to its end in any case. */
export async function readReport(stream: Readable): Promise<MailReport> {
  const parts = await partsOf(stream).catch((): Part[] => []);
  stream.resume();
  const status = parts.find(({ type }) => /^message\/(global-)?delivery-status$/.test(type));
  const feedback = parts.find(({ type }) => type === 'message/feedback-report');
  const quoted = parts.filter(({ type }) =>
    /^(message\/(global-)?(rfc822|feedback-report|headers)|text\/rfc822-headers)/.test(type),
  );
  const texts = [status, ...quoted].flatMap((part) => part?.text ?? []);
  const references = [...new Set(texts.flatMap((text) => text.match(REFERENCE) ?? []))].slice(0, REFERENCES_MAX);
  if (feedback) {
    const isAbuse = /^feedback-type:\s*(abuse|fraud)/im.test(feedback.text);
    return { kind: isAbuse ? 'complaint' : 'none', failures: [], references };
  }
  const failures = status ? failuresOf(status.text) : [];
  return { kind: failures.length ? 'bounce' : 'none', failures, references };
}

async function partsOf(stream: Readable): Promise<Part[]> {
  const { Splitter } = mailsplit();
  const splitter = new Splitter({ maxHeadSize: PART_BYTES_MAX, maxChildNodes: NODES_MAX, ignoreEmbedded: true });
  const parts: Part[] = [];
  stream.once('error', () => splitter.destroy());
  stream.pipe(splitter);
  for await (const chunk of splitter as AsyncIterable<{ type: string; contentType?: string | false; value?: Buffer }>) {
    if (chunk.type === 'node') parts.push({ type: String(chunk.contentType || 'text/plain').toLowerCase(), text: '' });
    const part = parts[parts.length - 1];
    if (chunk.type === 'body' && part && part.text.length < PART_BYTES_MAX)
      part.text += (chunk.value as Buffer).toString('latin1').slice(0, PART_BYTES_MAX - part.text.length);
  }
  return parts;
}

/** Permanent failures by recipient, without delays and successes. */
function failuresOf(text: string): MailReport['failures'] {
  const unfolded = text.replace(/\r?\n[ \t]+/g, ' ');
  return unfolded.split(/\r?\n\s*\r?\n/).flatMap((group) => {
    if (fieldOf(group, 'action').toLowerCase() !== 'failed') return [];
    const diagnostic = fieldOf(group, 'diagnostic-code').replace(/^smtp;\s*/i, '');
    return [{ status: fieldOf(group, 'status'), diagnostic: diagnostic.replace(/\p{Cc}+/gu, ' ').slice(0, 500) }];
  });
}

function fieldOf(group: string, name: string): string {
  return (new RegExp(`^${name}:[ \\t]*(.*)$`, 'im').exec(group)?.[1] ?? '').trim();
}
