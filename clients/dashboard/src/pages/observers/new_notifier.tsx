// A notifier of the project, made where it is needed.
import { useState } from 'preact/hooks';
import { request } from '../../api/client';
import { graphql, type VariablesOf } from '../../api/graphql';
import { useAction } from '../../api/use_query';
import { Field, Form, Problem, Select, Submit, useFields } from '../../parts/form';

const CREATE = graphql(`
  mutation CreateNotifier($project_id: ID!, $input: CreateNotifierInput!) {
    createNotifier(project_id: $project_id, input: $input) {
      id
    }
  }
`);

type Input = VariablesOf<typeof CREATE>['input'];
type Type = Input['type'];
type Config = Input['config'];

interface Target {
  field: keyof Config;
  label: string;
  example: string;
  type?: 'url' | 'password';
  isOptional?: true;
}

const webhook = (label: string, example: string): Target => ({ field: 'webhook_url', label, example, type: 'url' });
const token = (label: string): Target => ({ field: 'token', label, example: '', type: 'password' });
const server = (label: string, example: string): Target => ({ field: 'url', label, example, type: 'url' });

/** Of each type the fields that it needs. */
const TYPES: Record<Type, { title: string; targets: Target[] }> = {
  email: {
    title: 'E-mail',
    targets: [{ field: 'addresses', label: 'Addresses, separated by commas', example: 'ops@example.com' }],
  },
  slack: {
    title: 'Slack',
    targets: [webhook('Incoming webhook of Slack', 'https://hooks.slack.com/services/…')],
  },
  discord: {
    title: 'Discord',
    targets: [webhook('Webhook of the channel', 'https://discord.com/api/webhooks/…')],
  },
  teams: {
    title: 'Microsoft Teams',
    targets: [webhook('Webhook of the workflow', 'https://….api.powerplatform.com/…')],
  },
  mattermost: {
    title: 'Mattermost',
    targets: [webhook('Incoming webhook of Mattermost', 'https://chat.example.com/hooks/…')],
  },
  telegram: {
    title: 'Telegram',
    targets: [token('Token of the bot'), { field: 'chat_id', label: 'Id of the chat', example: '-1001234567890' }],
  },
  ntfy: {
    title: 'ntfy',
    targets: [
      { field: 'topic', label: 'Topic', example: 'a-name-that-nobody-guesses' },
      { ...server('Server', 'https://ntfy.sh'), isOptional: true },
      { ...token('Access token'), isOptional: true },
    ],
  },
  gotify: {
    title: 'Gotify',
    targets: [server('Server', 'https://gotify.example.com'), token('Token of the application')],
  },
  webhook: { title: 'Webhook', targets: [server('URL', 'https://ops.example.com/hooks/platform')] },
  pagerduty: {
    title: 'PagerDuty',
    targets: [{ field: 'routing_key', label: 'Integration key', example: '', type: 'password' }],
  },
};
const OPTIONS = Object.entries(TYPES).map(([value, { title }]) => ({ value, label: title }));
const NOTHING = { addresses: '', webhook_url: '', url: '', routing_key: '', token: '', chat_id: '', topic: '' };
type Written = keyof typeof NOTHING;

/** The fields of the type that have a value. */
function configOf(type: Type, values: Record<Written, string>): Config {
  const written = TYPES[type].targets.flatMap(({ field }) => {
    const value = values[field as Written].trim();
    if (!value) return [];
    return [[field, field === 'addresses' ? value.split(/[\s,;]+/).filter(Boolean) : value] as const];
  });
  return Object.fromEntries(written);
}

export function NewNotifier({ projectId, made }: { projectId: string; made(id: string): Promise<void> }) {
  const [type, setType] = useState<Type>('email');
  const fields = useFields({ name: '', ...NOTHING });
  const { targets } = TYPES[type];
  const action = useAction(async () => {
    const input = { name: fields.values.name, type, config: configOf(type, fields.values) };
    const { createNotifier } = await request(CREATE, { project_id: projectId, input });
    fields.set({ name: '', ...NOTHING });
    await made(createNotifier.id);
  });
  return (
    <details class="more">
      <summary>New notifier</summary>
      <Form action={action}>
        <div class="columns">
          <Field label="Name" {...fields.of('name', action)} required placeholder="On call" />
          <Select
            label="Type"
            name="type"
            value={type}
            options={OPTIONS}
            onChange={(value) => {
              setType(value as Type);
              fields.set(NOTHING);
            }}
          />
          {targets.map(({ field, label, example, type: kind = 'text', isOptional }) => (
            <Field
              key={field}
              label={isOptional ? `${label} (optional)` : label}
              {...fields.of(field as Written, action)}
              {...{ type: kind, placeholder: example, autocomplete: 'off' }}
              required={!isOptional}
            />
          ))}
        </div>
        <Problem error={action.error} fields={['name', ...targets.map(({ field }) => field)]} />
        <footer class="actions">
          <Submit action={action}>Create notifier</Submit>
        </footer>
      </Form>
    </details>
  );
}
