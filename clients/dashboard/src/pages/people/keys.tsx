// Keys of a project and of the person: their secret is shown once.
import { useState } from 'preact/hooks';
import { request } from '../../api/client';
import { graphql } from '../../api/graphql';
import { useAction, useQuery } from '../../api/use_query';
import { Field, Form, Problem, Submit, useFields } from '../../parts/form';
import { Page, Section, Waiting } from '../../parts/page';
import { SecretOnce } from '../../parts/secret_once';
import { mayActAs } from '../../session';
import { KEY_FIELDS, KeyTable, type Key } from './key_table';

const PROJECT_KEYS = graphql(
  `
    query ProjectKeys($id: ID!) {
      listProjectKeys(project_id: $id, limit: 50) {
        data {
          ...KeyFields
        }
      }
    }
  `,
  [KEY_FIELDS],
);
const PERSONAL_KEYS = graphql(
  `
    query PersonalKeys {
      listPersonalKeys(limit: 100) {
        data {
          ...KeyFields
        }
      }
    }
  `,
  [KEY_FIELDS],
);
const CREATE_PROJECT_KEY = graphql(`
  mutation CreateProjectKey($project_id: ID!, $input: CreateProjectKeyInput!) {
    createProjectKey(project_id: $project_id, input: $input) {
      token
    }
  }
`);
const CREATE_PERSONAL_KEY = graphql(`
  mutation CreatePersonalKey($input: CreatePersonalKeyInput!) {
    createPersonalKey(input: $input) {
      token
    }
  }
`);
const REVOKE_PROJECT_KEY = graphql(`
  mutation RevokeProjectKey($project_id: ID!, $id: ID!) {
    revokeProjectKey(project_id: $project_id, id: $id)
  }
`);
const REVOKE_PERSONAL_KEY = graphql(`
  mutation RevokePersonalKey($id: ID!) {
    revokePersonalKey(id: $id)
  }
`);

const RESUME = graphql(`
  mutation ResumeKey($id: ID!) {
    resumeKey(id: $id) {
      id
    }
  }
`);

const SCOPES = ['read', 'write', 'deploy', 'env:read', 'env:write', 'logs:read'];
interface Made {
  name: string;
  token: string;
}

export function Keys({ id }: { id: string }) {
  return (
    <Page title="Keys" projectId={id}>
      <ProjectKeys id={id} />
      <PersonalKeys projectId={id} />
    </Page>
  );
}

function Shown({ made, close }: { made: Made | null; close(): void }) {
  return made && <SecretOnce key={made.token} secret={made.token} label={`key ${made.name}`} onClose={close} />;
}

function ProjectKeys({ id }: { id: string }) {
  const { data, error, reload } = useQuery(PROJECT_KEYS, { id });
  const [made, setMade] = useState<Made | null>(null);
  const fields = useFields({ name: '' });
  const [may_destroy, setMayDestroy] = useState(true);
  const create = async (input: { name: string; may_destroy: boolean }): Promise<string> => {
    const { createProjectKey } = await request(CREATE_PROJECT_KEY, { project_id: id, input });
    return createProjectKey.token;
  };
  const action = useAction(async () => {
    const { name } = fields.values;
    setMade({ name, token: await create({ name, may_destroy }) });
    fields.set({ name: '' });
    await reload();
  });
  const revoke = async (key: Key): Promise<void> => {
    await request(REVOKE_PROJECT_KEY, { project_id: id, id: key.id });
    await reload();
  };
  const keep = ({ name }: Key, token: string): Promise<void> => (setMade({ name, token }), reload());
  return (
    <Section title="Project keys">
      <p class="faint">They act as the project, and stay when the person who made them leaves.</p>
      <Shown made={made} close={() => setMade(null)} />
      {mayActAs('owner', id) ? (
        <Form action={action} class="inline form-line">
          <Field label="New project key" {...fields.of('name', action)} required placeholder="CI" />
          <MayDelete value={may_destroy} set={setMayDestroy} />
          <Submit action={action}>Create project key</Submit>
          <Problem error={action.error} fields={['name']} />
        </Form>
      ) : (
        <p class="faint">Only owners create project keys.</p>
      )}
      {!data && <Waiting error={error} />}
      {data && (
        <KeyTable
          keys={data.listProjectKeys.data}
          mayChange={mayActAs('developer', id)}
          revoke={revoke}
          resume={mayActAs('owner', id) ? async (key) => (await request(RESUME, { id: key.id }), reload()) : null}
          renew={mayActAs('owner', id) ? ({ name, may_destroy: may }) => create({ name, may_destroy: may }) : null}
          keep={(key, token) => void keep(key, token)}
        />
      )}
    </Section>
  );
}

function PersonalKeys({ projectId }: { projectId: string }) {
  const { data, error, reload } = useQuery(PERSONAL_KEYS, {});
  const [made, setMade] = useState<Made | null>(null);
  const create = async (input: PersonalInput): Promise<string> => {
    const { createPersonalKey } = await request(CREATE_PERSONAL_KEY, { input });
    return createPersonalKey.token;
  };
  const keep = async (name: string, token: string): Promise<void> => {
    setMade({ name, token });
    await reload();
  };
  const revoke = async ({ id }: Key): Promise<void> => {
    await request(REVOKE_PERSONAL_KEY, { id });
    await reload();
  };
  const renew = ({ name, scopes, project_ids, may_destroy, ...times }: Key): Promise<string> =>
    create({
      ...{ name, scopes: [...(scopes ?? [])], project_ids: project_ids && [...project_ids], may_destroy },
      expires_at: renewedEnd(times),
    });
  return (
    <Section title="Personal keys">
      <p class="faint">They act as you. Programs that you have allowed on a page of the platform stand here too.</p>
      <Shown made={made} close={() => setMade(null)} />
      <NewPersonal projectId={projectId} create={async (input) => keep(input.name, await create(input))} />
      {!data && <Waiting error={error} />}
      {data && (
        <KeyTable
          keys={data.listPersonalKeys.data}
          mayChange
          revoke={revoke}
          resume={async (key) => (await request(RESUME, { id: key.id }), reload())}
          renew={renew}
          keep={({ name }, token) => void keep(name, token)}
        />
      )}
    </Section>
  );
}

/** The new key lasts from now as long as the old one did from its creation. */
function renewedEnd({ created_at, expires_at }: Pick<Key, 'created_at' | 'expires_at'>): string | null {
  return expires_at && new Date(Date.now() + Date.parse(expires_at) - Date.parse(created_at)).toISOString();
}

interface PersonalInput {
  name: string;
  scopes: string[];
  project_ids?: string[] | null;
  may_destroy: boolean;
  expires_at?: string | null;
}

function MayDelete({ value, set }: { value: boolean; set(value: boolean): void }) {
  return (
    <label class="check" title="Delete, restore in place, replace DNS records, end access by a rotation">
      <input type="checkbox" checked={value} onChange={() => set(!value)} />
      may delete
    </label>
  );
}

function NewPersonal({ projectId, create }: { projectId: string; create(input: PersonalInput): Promise<void> }) {
  const fields = useFields({ name: '', days: '90' });
  const [scopes, setScopes] = useState(['read', 'write', 'deploy', 'logs:read']);
  const [isHere, setHere] = useState(true);
  const [may_destroy, setMayDestroy] = useState(true);
  const action = useAction(async () => {
    const days = Number(fields.values.days);
    const expires_at = days ? new Date(Date.now() + days * 86_400_000).toISOString() : null;
    const project_ids = isHere ? [projectId] : null;
    await create({ name: fields.values.name, scopes, project_ids, may_destroy, expires_at });
    fields.set({ name: '' });
  });
  const toggle = (scope: string): void =>
    setScopes((before) => SCOPES.filter((one) => (one === scope) !== before.includes(one)));
  return (
    <Form action={action}>
      <div class="columns">
        <Field label="New personal key" {...fields.of('name', action)} required placeholder="laptop" />
        <Field label="Expires in days" {...fields.of('days', action)} type="number" min={0} hint="Empty or 0: never." />
      </div>
      <fieldset class="checks">
        <legend>Scopes</legend>
        {SCOPES.map((scope) => (
          <label key={scope} class="check">
            <input type="checkbox" checked={scopes.includes(scope)} onChange={() => toggle(scope)} />
            {scope}
          </label>
        ))}
        <label class="check">
          <input type="checkbox" checked={isHere} onChange={() => setHere(!isHere)} />
          in this project only
        </label>
        <MayDelete value={may_destroy} set={setMayDestroy} />
      </fieldset>
      <Problem error={action.error} fields={['name']} />
      <footer class="actions">
        <Submit action={action}>Create personal key</Submit>
      </footer>
    </Form>
  );
}
