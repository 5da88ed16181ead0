// A new application: of a repository, a folder or an archive, a preset or an image, with its settings, and its first
// deployment.
import { useRef, useState } from 'preact/hooks';
import { graphql, type ResultOf } from '../api/graphql';
import { useAction, useQuery, type Action } from '../api/use_query';
import { DropSource } from '../parts/drop_source';
import { Field, Form, Problem, Select, useFields } from '../parts/form';
import { Page, Waiting } from '../parts/page';
import { inOrder, SIZE_FIELDS, Sizes } from '../parts/sizes';
import { SubmitWhen } from '../parts/submit_when';
import { setQuery, address } from '../router';
import { mayActAs, projectOf } from '../session';
import type { Chosen } from '../source/files';
import { mergeDotenv, type Draft } from './application/draft';
import { Paste, VariableRows } from './application/variable_rows';
import { createAndDeploy, type Input } from './new_application/create';
import { Repository } from './new_application/repository';
import { Presets, Sources, type Source } from './new_application/sources';
import { projectFlag } from '../parts/command';

const CATALOG = graphql(
  `
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
          ...SizeFields
        }
      }
      listRegions(limit: 100, available: true) {
        data {
          id
          name
        }
      }
    }
  `,
  [SIZE_FIELDS],
);

type Catalog = ResultOf<typeof CATALOG>;
export function NewApplication({ id }: { id: string }) {
  const { data, error } = useQuery(CATALOG, {});
  return (
    <Page
      title="New application"
      projectId={id}
      command={`svc up --create --app shop${projectFlag(id)}`}
      trail={[{ href: `/projects/${id}/new`, label: 'New application' }]}
    >
      {!data && <Waiting error={error} />}
      {data && !mayActAs('developer', id) && <p class="notice">Your role in this project is viewer. Ask an owner.</p>}
      {data && mayActAs('developer', id) && <NewForm catalog={data} projectId={id} />}
    </Page>
  );
}

const EMPTY = {
  ...{ name: '', host: '', repository_url: '', repository_id: '', branch: '', image: '', preset: '' },
  ...{ application_type: '', region: '', root_directory: '', build_command: '', command: '' },
};
const FIELDS = Object.keys(EMPTY);
type Values = typeof EMPTY;

function NewForm({ catalog, projectId }: { catalog: Catalog; projectId: string }) {
  const given = address.value.query;
  const [from, setFrom] = useState<Source>((given.get('from') as Source | null) ?? 'git');
  const [chosen, setChosen] = useState<Chosen | null>(null);
  const [drafts, setDrafts] = useState<Draft[]>([]);
  const [progress, setProgress] = useState('');
  const made = useRef<string | null>(null);
  const fields = useFields({
    ...EMPTY,
    repository_url: given.get('repository') ?? '',
    preset: given.get('preset') ?? '',
    region: projectOf(projectId)?.default_region ?? catalog.listRegions.data[0]?.id ?? '',
  });
  const { values } = fields;
  const action = useAction(async () => {
    const { root_directory, build_command, command: start_command } = values;
    const input = { ...inputOf(from, values), ...(values.region && { region: values.region }) } as Input;
    const files = from === 'upload' ? chosen : null;
    const parts = { projectId, input, root_directory, build_command, start_command, variables: drafts, chosen: files };
    await createAndDeploy(parts, made.current, (id) => (made.current = id), setProgress).finally(() => setProgress(''));
  });
  return (
    <Form action={action}>
      <Sources chosen={from} choose={(one) => (setFrom(one), setQuery({ from: one }))} />
      <SourceFields
        {...{ from, catalog, projectId, fields, action, chosen, setChosen }}
        useSecrets={(text) => setDrafts((before) => mergeDotenv(before, text))}
      />
      <Place {...{ catalog, fields, action }} />
      <Sizes
        sizes={inOrder(catalog.listApplicationTypes.data, values.region)}
        chosen={values.application_type}
        choose={(id) => fields.set({ application_type: id })}
      />
      <Commands {...{ from, fields, action }} />
      <Variables projectId={projectId} drafts={drafts} changed={setDrafts} />
      <Problem error={action.error} fields={FIELDS} />
      {made.current && action.error && <p class="faint">The application exists. Another attempt goes on with it.</p>}
      <footer class="actions">
        <span aria-live="polite" class="faint">
          {progress}
        </span>
        <SubmitWhen isReady={from !== 'upload' || chosen !== null} action={action}>
          Create and deploy
        </SubmitWhen>
      </footer>
    </Form>
  );
}

interface SourceFieldsProps extends PartProps {
  from: Source;
  catalog: Catalog;
  projectId: string;
  chosen: Chosen | null;
  setChosen(chosen: Chosen | null): void;
  useSecrets(text: string): void;
}

function SourceFields({ from, catalog, projectId, chosen, setChosen, useSecrets, fields, action }: SourceFieldsProps) {
  const { values } = fields;
  const suggest = (text: string): void => {
    if (!values.name) fields.set({ name: nameFrom(text) });
  };
  const take = (found: Chosen | null): void => {
    setChosen(found);
    if (found) suggest(found.name.replace(/\.(zip|tgz|tar\.gz)$/i, ''));
  };
  if (from === 'git') return <Repository {...{ projectId, fields, action, suggest }} />;
  if (from === 'upload') return <DropSource chosen={chosen} choose={take} useSecrets={useSecrets} />;
  if (from === 'preset')
    return (
      <Presets
        presets={catalog.listPresets.data}
        chosen={values.preset}
        choose={(preset) => (fields.set({ preset }), suggest(preset))}
      />
    );
  return (
    <Field
      label="Image"
      {...fields.of('image', action)}
      required
      placeholder="registry.example.com/acme/shop:1.4"
      onBlur={() => suggest(values.image)}
    />
  );
}

interface PartProps {
  fields: ReturnType<typeof useFields<Values>>;
  action: Action<void>;
}

function Place({ catalog, fields, action }: PartProps & { catalog: Catalog }) {
  const regions = catalog.listRegions.data;
  return (
    <div class="columns">
      <Field
        label="Name"
        {...fields.of('name', action)}
        required
        autocomplete="off"
        hint="Lower-case letters, digits and dashes. It becomes part of the address."
      />
      {regions.length > 1 && (
        <Select
          label="Region"
          {...fields.of('region', action)}
          options={regions.map(({ id, name }) => ({ value: id, label: name }))}
          onChange={(region) => fields.set({ region, application_type: '' })}
        />
      )}
    </div>
  );
}

function Commands({ from, fields, action }: PartProps & { from: Source }) {
  return (
    <details class="more">
      <summary>{from === 'image' ? 'Start command' : 'Root directory and commands'}</summary>
      <div class="columns">
        {from !== 'image' && (
          <>
            <Field
              label="Root directory"
              {...fields.of('root_directory', action)}
              placeholder="."
              hint="Of a repository with several applications: the folder of this one."
            />
            <Field label="Build command" {...fields.of('build_command', action)} placeholder="default of the builder" />
          </>
        )}
        <Field
          label="Start command"
          {...fields.of('command', action)}
          placeholder="found out"
          hint="Otherwise that of the Procfile, the builder or the image."
        />
      </div>
    </details>
  );
}

interface VariablesProps {
  projectId: string;
  drafts: Draft[];
  changed(drafts: Draft[]): void;
}

function Variables({ projectId, drafts, changed }: VariablesProps) {
  return (
    <fieldset class="bare new-variables">
      <legend>Environment variables</legend>
      <VariableRows projectId={projectId} drafts={drafts} changed={changed} />
      <Paste paste={(text) => changed(mergeDotenv(drafts, text))} />
    </fieldset>
  );
}

function inputOf(from: Source, values: Values): Partial<Input> {
  const { name, application_type: size } = values;
  return { name, ...sourceOf(from, values), ...(size && { application_type: size }) };
}

function sourceOf(
  from: Source,
  { host, repository_url, repository_id, branch, image, preset }: Values,
): Partial<Input> {
  if (from === 'preset') return { preset };
  if (from === 'image') return { source: { type: 'image', image } };
  if (from === 'upload') return { source: { type: 'upload' } };
  const ofBranch = branch && { branch };
  if (!host) return { source: { type: 'git', repository_url, ...ofBranch } };
  if (repository_id) return { source: { type: 'git', git_integration_id: host, repository_id, ...ofBranch } };
  return { source: { type: 'git', shared_repository_id: host, ...ofBranch } };
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
