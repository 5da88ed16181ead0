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

/** Of each type the field that it needs. */
const TARGETS: Record<Type, { title: string; field: keyof Config; label: string; example: string; type?: string }> = {
  email: { title: 'E-mail', field: 'addresses', label: 'Addresses, separated by commas', example: 'ops@example.com' },
  slack: {
    ...{ title: 'Slack', field: 'webhook_url', label: 'Incoming webhook of Slack', type: 'url' },
    example: 'https://hooks.slack.com/services/…',
  },
  discord: {
    ...{ title: 'Discord', field: 'webhook_url', label: 'Webhook of the channel', type: 'url' },
    example: 'https://discord.com/api/webhooks/…',
  },
  webhook: {
    ...{ title: 'Webhook', field: 'url', label: 'URL', type: 'url' },
    example: 'https://ops.example.com/hooks/platform',
  },
  pagerduty: {
    ...{ title: 'PagerDuty', field: 'routing_key', label: 'Integration key', type: 'password' },
    example: '',
  },
};
const TYPES = Object.entries(TARGETS).map(([value, { title }]) => ({ value, label: title }));

export function NewNotifier({ projectId, made }: { projectId: string; made(id: string): Promise<void> }) {
  const [type, setType] = useState<Type>('email');
  const fields = useFields({ name: '', target: '' });
  const { field, label, example, type: kind = 'text' } = TARGETS[type];
  const action = useAction(async () => {
    const { name, target } = fields.values;
    const config = { [field]: field === 'addresses' ? target.split(/[\s,;]+/).filter(Boolean) : target };
    const { createNotifier } = await request(CREATE, { project_id: projectId, input: { name, type, config } });
    fields.set({ name: '', target: '' });
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
            options={TYPES}
            onChange={(value) => {
              setType(value as Type);
              fields.set({ target: '' });
            }}
          />
          <Field
            label={label}
            {...fields.of('target', action)}
            {...{ name: field, type: kind, placeholder: example, autocomplete: 'off' }}
            required
          />
        </div>
        <Problem error={action.error} fields={['name', field]} />
        <footer class="actions">
          <Submit action={action}>Create notifier</Submit>
        </footer>
      </Form>
    </details>
  );
}
