// A new application: from a Git address, from a preset or from an image, and its first deployment.
import { useState } from 'preact/hooks';
import { request } from '../api/client';
import { graphql, type ResultOf, type VariablesOf } from '../api/graphql';
import { useAction, useQuery, type Action } from '../api/use_query';
import { Field, Form, Problem, Select, Submit, useFields } from '../parts/form';
import { Page, Waiting } from '../parts/page';
import { navigate, setQuery, address } from '../router';
import { mayActAs } from '../session';

const CATALOG = graphql(`
  query ApplicationCatalog {
    listPresets(limit: 100) {
      data {
        id
        name
        description
        category
        requires_engine
      }
    }
    listApplicationTypes(limit: 100) {
      data {
        id
        name
        vcpu
        memory_mb
        price_monthly
        currency
        default
        available
      }
    }
  }
`);
const CREATE = graphql(`
  mutation CreateApplication($project_id: ID!, $input: CreateApplicationInput!) {
    createApplication(project_id: $project_id, input: $input) {
      id
    }
  }
`);
const DEPLOY = graphql(`
  mutation FirstDeployment($id: ID!) {
    createDeployment(id: $id, input: {}) {
      id
    }
  }
`);

type Input = VariablesOf<typeof CREATE>['input'];
type Catalog = ResultOf<typeof CATALOG>;
type Source = 'git' | 'preset' | 'image';

const SOURCES: [Source, string, string][] = [
  ['git', 'Git repository', 'Built from the files of a repository.'],
  ['preset', 'Preset', 'A program that is ready to run.'],
  ['image', 'Image', 'A container image, run as it is.'],
];

export function NewApplication({ id }: { id: string }) {
  const { data, error } = useQuery(CATALOG, {});
  return (
    <Page
      title="New application"
      projectId={id}
      command={`svc up --create --app shop --project ${id}`}
      trail={[{ href: `/projects/${id}/new`, label: 'New application' }]}
    >
      {!data && <Waiting error={error} />}
      {data && !mayActAs('developer', id) && <p class="notice">Your role in this project is viewer. Ask an owner.</p>}
      {data && mayActAs('developer', id) && <NewForm catalog={data} projectId={id} />}
    </Page>
  );
}

const FIELDS = ['name', 'repository_url', 'branch', 'image', 'preset', 'application_type'];

function NewForm({ catalog, projectId }: { catalog: Catalog; projectId: string }) {
  const given = address.value.query;
  const [from, setFrom] = useState<Source>((given.get('from') as Source | null) ?? 'git');
  const fields = useFields({
    ...{ name: '', repository_url: given.get('repository') ?? '', branch: '', image: '', application_type: '' },
    preset: given.get('preset') ?? '',
  });
  const { values } = fields;
  const action = useAction(async () => {
    const size = values.application_type && { application_type: values.application_type };
    const input: Input = { name: values.name, ...sourceOf(from, values), ...size };
    const { createApplication } = await request(CREATE, { project_id: projectId, input });
    await deployFirst(createApplication.id);
  });
  const suggest = (text: string): void => {
    if (!values.name) fields.set({ name: nameFrom(text) });
  };
  return (
    <Form action={action}>
      <Sources chosen={from} choose={(one) => (setFrom(one), setQuery({ from: one }))} />
      <Problem error={action.error} fields={FIELDS} />
      {from === 'git' && <GitFields fields={fields} action={action} suggest={suggest} />}
      {from === 'image' && (
        <Field
          label="Image"
          {...fields.of('image', action)}
          required
          placeholder="registry.example.com/acme/shop:1.4"
          onBlur={() => suggest(values.image)}
        />
      )}
      {from === 'preset' && (
        <Presets
          catalog={catalog}
          chosen={values.preset}
          choose={(preset) => (fields.set({ preset }), suggest(preset))}
        />
      )}
      <div class="columns">
        <Field
          label="Name"
          {...fields.of('name', action)}
          required
          autocomplete="off"
          hint="Lower-case letters, digits and dashes. It becomes part of the address."
        />
        <Select
          label="Instance size"
          {...fields.of('application_type', action)}
          options={sizeOptions(catalog)}
          onChange={(value) => fields.set({ application_type: value })}
        />
      </div>
      <footer class="actions">
        <Submit action={action}>Create and deploy</Submit>
      </footer>
    </Form>
  );
}

interface GitFieldsProps {
  fields: ReturnType<typeof useFields<{ repository_url: string; branch: string }>>;
  action: Action<void>;
  suggest(text: string): void;
}

function GitFields({ fields, action, suggest }: GitFieldsProps) {
  return (
    <div class="columns">
      <Field
        label="Repository URL"
        {...fields.of('repository_url', action)}
        required
        placeholder="https://git.example.com/acme/shop.git"
        hint="With https or ssh."
        onBlur={() => suggest(fields.values.repository_url)}
      />
      <Field label="Branch" {...fields.of('branch', action)} placeholder="default branch" />
    </div>
  );
}

function Sources({ chosen, choose }: { chosen: Source; choose(source: Source): void }) {
  return (
    <fieldset class="choices">
      <legend>Source</legend>
      {SOURCES.map(([value, label, hint]) => (
        <label key={value} class="choice">
          <input type="radio" name="from" checked={chosen === value} onChange={() => choose(value)} />
          <strong>{label}</strong>
          <small>{hint}</small>
        </label>
      ))}
    </fieldset>
  );
}

function Presets({ catalog, chosen, choose }: { catalog: Catalog; chosen: string; choose(id: string): void }) {
  return (
    <fieldset class="choices presets">
      <legend>Preset</legend>
      {catalog.listPresets.data.map((preset) => (
        <label key={preset.id} class="choice">
          <input
            type="radio"
            name="preset"
            required
            checked={chosen === preset.id}
            onChange={() => choose(preset.id)}
          />
          <strong>{preset.name}</strong>
          <small>
            {preset.description}
            {preset.requires_engine && ` Needs a ${preset.requires_engine} database.`}
          </small>
        </label>
      ))}
    </fieldset>
  );
}

function sizeOptions({ listApplicationTypes }: Catalog): { value: string; label: string; disabled?: boolean }[] {
  const sizes = listApplicationTypes.data.map(({ id, name, memory_mb, vcpu, price_monthly, currency, available }) => ({
    value: id,
    label: `${name}: ${memory_mb} MB, ${vcpu} CPU, ${price_monthly} ${currency} a month`,
    disabled: !available,
  }));
  return [{ value: '', label: 'Default' }, ...sizes];
}

type SourceValues = Record<'repository_url' | 'branch' | 'image' | 'preset', string>;

function sourceOf(from: Source, { repository_url, branch, image, preset }: SourceValues): Partial<Input> {
  if (from === 'preset') return { preset };
  if (from === 'image') return { source: { type: 'image', image } };
  return { source: { type: 'git', repository_url, ...(branch && { branch }) } };
}

/** The application is there, whatever becomes of its deployment: its page says what is wrong, and tries again. */
async function deployFirst(id: string): Promise<void> {
  try {
    const { createDeployment } = await request(DEPLOY, { id });
    navigate(`/applications/${id}/deployments/${createDeployment.id}`);
  } catch (error) {
    navigate(`/applications/${id}?problem=${encodeURIComponent((error as Error).message)}`);
  }
}

/** `shop` of `https://git.example.com/acme/shop.git` and of `registry.example.com/acme/shop:1.4`. */
export function nameFrom(text: string): string {
  const last =
    text
      .replace(/\.git\/?$|\/$/g, '')
      .split('/')
      .pop() ?? '';
  const name = last.replace(/[:@].*$/, '').toLowerCase();
  return name
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, 40);
}
