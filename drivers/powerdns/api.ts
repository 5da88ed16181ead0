// Client of the PowerDNS HTTP API (https://doc.powerdns.com/authoritative/http-api/).
import { trusted, type ClientRequest } from '../../core/outbound/client';
import { checkpoint, DriverError, EngineAway, type DriverContext, type DriverErrorReason } from '../../core/driver';

export interface PowerdnsOptions {
  /** URL of the webserver, such as http://127.0.0.1:8081. */
  url: string;
  key: string;
}

export interface ApiRrset {
  name: string;
  type: string;
  ttl: number;
  records: { content: string; disabled: boolean }[];
}

export interface ApiZone {
  name: string;
  account: string;
  kind: string;
  dnssec: boolean;
  serial: number;
  /** The served serial: with DNSSEC it differs from `serial`. */
  edited_serial?: number;
  soa_edit_api?: string;
  rrsets: ApiRrset[];
}

export interface ApiKey {
  id: number;
  active: boolean;
  dnskey: string;
}

export interface PowerdnsApi {
  /** `path` is relative to the server. @returns null for 404 */
  call<T>(method: string, path: string, ctx: DriverContext, body?: unknown): Promise<T | null>;
}

const REASONS: Record<number, DriverErrorReason> = {
  400: 'invalid',
  401: 'unauthorized',
  403: 'unauthorized',
  409: 'conflict',
  413: 'invalid',
  422: 'invalid',
};
const ANSWER_WITHIN_MS = 15_000;

export function openPowerdnsApi({ url, key }: PowerdnsOptions): PowerdnsApi {
  return {
    async call<T>(method: string, path: string, ctx: DriverContext, body?: unknown): Promise<T | null> {
      checkpoint(ctx);
      const response = await request(`${url}/api/v1/servers/localhost${path}`, {
        method,
        headers: { 'X-API-Key': key, Accept: 'application/json', 'Content-Type': 'application/json' },
        within: { ms: ANSWER_WITHIN_MS, of: 'response' },
        signal: ctx.signal,
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      if (response.status === 404) return null;
      if (response.status >= 400) throw refusal(response);
      return (response.text ? JSON.parse(response.text) : null) as T | null;
    },
  };
}

async function request(url: string, init: ClientRequest): Promise<{ status: number; text: string }> {
  try {
    const response = await trusted(url, init);
    return { status: response.status, text: await response.text() };
  } catch (error) {
    throw Object.assign(new EngineAway('The name server does not respond.'), { cause: error });
  }
}

/** Of what PowerDNS says, in messages. */
const ERROR_CHARACTERS_MAX = 300;

/** A refused record, and its value as PowerDNS would write it. */
export class UnexpectedContent extends DriverError {
  constructor(
    error: string,
    readonly content: string,
    readonly expected: string,
  ) {
    super('invalid', `The name server refuses the zone: ${error.slice(0, ERROR_CHARACTERS_MAX)}.`);
  }
}

const REFUSED_FORM = /^Record \S+\/\w+ '([^]*)': Not in expected format \(parsed as '([^]*)'\)$/;

function errorOf(text: string): string {
  try {
    return String((JSON.parse(text) as { error?: unknown }).error ?? '');
  } catch {
    return '';
  }
}

function refusal({ status, text }: { status: number; text: string }): DriverError {
  const reason = REASONS[status] ?? 'transient';
  const error = errorOf(text);
  const [, content, expected] = REFUSED_FORM.exec(error) ?? [];
  if (content !== undefined && expected !== undefined) return new UnexpectedContent(error, content, expected);
  // PowerDNS names the rejected record.
  const record = error.startsWith('Record ') ? `: ${error.slice(0, ERROR_CHARACTERS_MAX)}` : '';
  const messages: Partial<Record<DriverErrorReason, string>> = {
    unauthorized: 'The name server refuses the API key of the platform.',
    conflict: 'The name server has another zone of this name.',
    invalid: `The name server refuses the zone${record}.`,
  };
  const message = messages[reason];
  const failure = message ? new DriverError(reason, message) : new EngineAway('The name server has an internal error.');
  // For the log.
  return Object.assign(failure, { cause: new Error(`${status} ${text.slice(0, 500)}`) });
}
