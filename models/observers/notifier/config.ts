// Configuration fields per notifier type, and which of them are shown, whole or masked.
import { isPrivateHost } from '../../../core/protocols/addresses';
import { validationFailed, type FieldError } from '../../../core/errors';
import type { NotifierTarget } from '../../../core/notifications';
import type { NotifierConfig, NotifierType, UpdateNotifierConfigInput } from '../../../schema/types';

/** The configuration in sealed form. */
export type SealedConfig = NotifierTarget;

type Field = keyof SealedConfig;

const FIELDS: Record<NotifierType, { needs: Field[]; may: Field[] }> = {
  email: { needs: ['addresses'], may: ['events'] },
  slack: { needs: ['webhook_url'], may: ['events'] },
  discord: { needs: ['webhook_url'], may: ['events'] },
  teams: { needs: ['webhook_url'], may: ['events'] },
  mattermost: { needs: ['webhook_url'], may: ['events'] },
  telegram: { needs: ['token', 'chat_id'], may: ['url', 'events'] },
  ntfy: { needs: ['topic'], may: ['url', 'token', 'events'] },
  gotify: { needs: ['url', 'token'], may: ['events'] },
  webhook: { needs: ['url'], may: ['secret', 'events'] },
  pagerduty: { needs: ['routing_key'], may: ['events'] },
};

const SHOWN_CHARACTERS = 4;
/** The last characters are shown, which would reveal half of a short secret. */
const SHOWN_FROM_CHARACTERS = 16;
const MASK = '***';

/**
 * The configuration after an update. A masked value that is sent back leaves the stored one unchanged.
 * @param present null for a new notifier
 * @throws validation_failed
 */
export function mergeConfig(
  type: NotifierType,
  present: SealedConfig | null,
  input: UpdateNotifierConfigInput,
  rules: { allowPrivateAddresses: boolean },
): SealedConfig {
  const { needs, may } = FIELDS[type];
  const given = Object.entries(input).filter(([, value]) => value !== undefined) as [Field, never][];
  const foreign = given.filter(([name, value]) => value !== null && ![...needs, ...may].includes(name));
  const shown = present && (publicConfigOf(present) as unknown as Record<string, unknown>);
  const merged: SealedConfig = { ...present };
  for (const [name, value] of given)
    if (JSON.stringify(value) !== JSON.stringify(shown?.[name])) merged[name] = value ?? undefined;
  const errors: FieldError[] = [
    ...foreign.map(([name]) => ({
      field: `config.${name}`,
      code: 'depends_on' as const,
      detail: `is not a field of ${type} notifiers`,
    })),
    ...needs
      .filter((name) => merged[name] == null)
      .map((name) => ({
        field: `config.${name}`,
        code: 'required' as const,
        detail: `is required for ${type} notifiers`,
      })),
    ...maskErrors(merged),
    ...movedTokenErrors(present, merged),
    ...addressErrors(merged, rules),
  ];
  if (errors.length) throw validationFailed(errors);
  return merged;
}

/** A mask of something else would be stored as the secret. */
function maskErrors({ secret, routing_key, token, topic }: SealedConfig): FieldError[] {
  return Object.entries({ secret, routing_key, token, topic }).flatMap(([name, value]): FieldError[] =>
    value?.startsWith(MASK)
      ? [{ field: `config.${name}`, code: 'invalid_format', detail: 'is the mask of another value' }]
      : [],
  );
}

/** Who cannot see the token must not have it sent to a server of their own. */
function movedTokenErrors(present: SealedConfig | null, { url, token }: SealedConfig): FieldError[] {
  const isMoved = present?.token != null && present.token === token && present.url !== url;
  const detail = 'must be given again, because `url` is another server';
  return isMoved ? [{ field: 'config.token', code: 'required', detail }] : [];
}

function addressErrors(
  config: SealedConfig,
  { allowPrivateAddresses }: { allowPrivateAddresses: boolean },
): FieldError[] {
  if (allowPrivateAddresses) return [];
  return (['webhook_url', 'url'] as const).flatMap((name): FieldError[] => {
    const url = config[name];
    if (url === undefined || !isPrivateHost(new URL(url).hostname)) return [];
    return [{ field: `config.${name}`, code: 'invalid_format', detail: 'must have a public address' }];
  });
}

/** As everybody may see it. */
export function publicConfigOf({
  addresses,
  webhook_url,
  url,
  secret,
  events,
  routing_key,
  token,
  chat_id,
  topic,
}: SealedConfig): NotifierConfig {
  // As it was before other types had them: null where there are none.
  const isWebhook = url !== undefined && token == null && topic === undefined;
  return {
    addresses: addresses ?? null,
    webhook_url: webhook_url === undefined ? null : maskedUrl(webhook_url),
    url: url === undefined ? null : maskedQuery(url),
    secret: secret == null ? null : maskedText(secret),
    events: events ?? (isWebhook ? [] : null),
    routing_key: routing_key === undefined ? null : maskedText(routing_key),
    token: token == null ? null : maskedText(token),
    chat_id: chat_id ?? null,
    // Who knows the topic of a public server reads its messages.
    topic: topic === undefined ? null : maskedText(topic),
  };
}

function maskedText(text: string): string {
  return text.length < SHOWN_FROM_CHARACTERS ? MASK : `${MASK}${text.slice(-SHOWN_CHARACTERS)}`;
}

// All of the path is the secret of such an address.
function maskedUrl(text: string): string {
  const { origin, pathname, search } = new URL(text);
  return `${origin}/${maskedText(pathname.slice(1) + search)}`;
}

function maskedQuery(text: string): string {
  const { origin, pathname, search } = new URL(text);
  return `${origin}${pathname}${search ? `?${MASK}` : ''}`;
}
