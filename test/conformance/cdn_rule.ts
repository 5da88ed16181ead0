// The form of a rule of caches, and short words to write one down.
import type { CdnCacheRules } from '../../engines/cdn/cdn';

export interface OriginAnswer {
  status?: number;
  headers?: Record<string, string | string[]>;
  body?: string;
  /** Answers 304 where the request names its entity tag or its date. */
  validates?: boolean;
  /** Ends the connection: before the head, or in the middle of the body. */
  breaks?: 'head' | 'body';
  delayMs?: number;
  /** The body is the request, as JSON. */
  reflects?: true;
  /** The second half of the body comes when the test says so. */
  holds?: true;
  /** How the end of the body is told; absent: by its length. */
  framing?: 'chunked' | 'close';
}

export interface Step {
  method?: string;
  /** Behind the path of the rule. */
  query?: string;
  headers?: Record<string, string>;
  scheme?: 'http' | 'https';
  /** Requests that the origin has had afterwards. */
  asked: number;
  status?: number;
  /** It may take a moment. */
  comes?: true;
  /** Of the answers of the origin, from 1; a text; '' for none. */
  body?: number | string;
  /** Parts of fields, null: absent. */
  fields?: Record<string, string | null>;
}

export interface Rule {
  rule: string;
  section: string;
  cache?: Partial<CdnCacheRules>;
  /** In turn; the last one again and again. */
  origin: OriginAnswer[];
  steps: Step[];
}

export const cc = (text: string, more: Record<string, string | string[]> = {}): OriginAnswer => ({
  headers: { 'cache-control': text, ...more },
});
export const answer = (headers: Record<string, string | string[]>, more: OriginAnswer = {}): OriginAnswer => ({
  headers,
  ...more,
});
export const kept: Step[] = [
  { asked: 1, body: 1 },
  { asked: 1, body: 1 },
];
export const notKept: Step[] = [
  { asked: 1, body: 1 },
  { asked: 2, body: 2 },
];
export const rule = (section: string, text: string, origin: OriginAnswer | OriginAnswer[], steps: Step[]): Rule => ({
  ...{ section, rule: text, origin: [origin].flat(), steps },
});
export const DAY_MS = 86_400_000;
export const date = (offsetMs: number): string => new Date(Date.now() + offsetMs).toUTCString();

export const ETAG = '"v1"';
