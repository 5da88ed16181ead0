// What can be set of an application, and what cannot be taken back.
import type { ComponentChildren, TargetedEvent } from 'preact';
import { useState } from 'preact/hooks';
import { request } from '../../api/client';
import { graphql, type ResultOf } from '../../api/graphql';
import { useAction, useQuery } from '../../api/use_query';
import { DangerZone } from '../../parts/danger_zone';
import { Check, Field, Form, Problem, Select, Submit, useFields } from '../../parts/form';
import { Section, Waiting } from '../../parts/page';
import { Protection } from '../../parts/protection';
import { undoOfDelete } from '../../parts/undo';
import { navigate } from '../../router';
import { ApplicationFrame, type Shown } from './frame';

const SETTINGS = graphql(`
  query ApplicationSettings($id: ID!) {
    getApplicationSettings(id: $id) {
      build {
        builder
        dockerfile_path
        root_directory
        build_command
        output_directory
      }
      run {
        release_command
        shutdown_grace_seconds
      }
      http {
        port
        force_https
        request_timeout_seconds
        sticky_sessions
      }
      health_check {
        type
        path
        interval_seconds
        timeout_seconds
      }
      maintenance_mode
      log_retention_days
    }
    getAutoDeploy(id: $id) {
      enabled
      branch
      status_reason
    }
  }
`);
const UPDATE = graphql(`
  mutation UpdateApplication($id: ID!, $input: UpdateApplicationInput!) {
    updateApplication(id: $id, input: $input) {
      id
    }
  }
`);
const UPDATE_SETTINGS = graphql(`
  mutation UpdateSettings($id: ID!, $input: UpdateApplicationSettingsInput!) {
    updateApplicationSettings(id: $id, input: $input) {
      application_id
    }
  }
`);
const UPDATE_AUTO_DEPLOY = graphql(`
  mutation UpdateAutoDeploy($id: ID!, $input: UpdateAutoDeployInput!) {
    updateAutoDeploy(id: $id, input: $input) {
      enabled
    }
  }
`);
const DELETE = graphql(`
  mutation DeleteApplication($id: ID!) {
    deleteApplication(id: $id)
  }
`);

type Settings = ResultOf<typeof SETTINGS>;

export function Settings({ id }: { id: string }) {
  return (
    <ApplicationFrame id={id} section="Settings" command={`svc api getApplicationSettings ${id}`}>
      {(shown) => <Loader shown={shown} />}
    </ApplicationFrame>
  );
}

function Loader({ shown }: { shown: Shown }) {
  const { data, error, reload } = useQuery(SETTINGS, { id: shown.application.id });
  if (!data) return <Waiting error={error} rows={8} />;
  return (
    <fieldset class="bare" disabled={!shown.mayChange}>
      <General shown={shown} settings={data} />
      <Running shown={shown} settings={data} reload={reload} />
      {shown.mayChange && <Danger shown={shown} />}
    </fieldset>
  );
}

function General({ shown, settings }: { shown: Shown; settings: Settings }) {
  const { application, reload } = shown;
  const { id, source } = application;
  const { enabled, status_reason } = settings.getAutoDeploy;
  const { name, description } = application;
  const fields = useFields({ name, description: description ?? '', branch: source?.branch ?? '' });
  const [pushes, setPushes] = useState(enabled);
  const isGit = source?.type === 'git';
  const action = useAction(async () => {
    const { values } = fields;
    const place = isGit && { source: { branch: values.branch || null } };
    await request(UPDATE, { id, input: { name: values.name, description: values.description || null, ...place } });
    if (isGit && pushes !== enabled) await request(UPDATE_AUTO_DEPLOY, { id, input: { enabled: pushes } });
    await reload();
  });
  const push = { checked: pushes, onChange: (event: Changed) => setPushes(event.currentTarget.checked) };
  return (
    <Section title="General">
      <SavedForm action={action} fields={['name', 'description', 'branch']}>
        <div class="columns">
          <Field label="Name" {...fields.of('name', action)} required hint="The address stays when the name changes." />
          <Field label="Description" {...fields.of('description', action)} maxLength={500} />
        </div>
        {isGit && (
          <div class="columns">
            <Field
              label="Branch"
              {...fields.of('branch', action)}
              placeholder="default branch"
              hint={source.repository_url}
            />
            <Check label="Deploy each push to the branch" name="enabled" hint={status_reason} {...push} />
          </div>
        )}
      </SavedForm>
    </Section>
  );
}

type Changed = TargetedEvent<HTMLInputElement>;

const FOLDER = 'Of a repository with several applications: the folder of this one.';
const CHECKS = [
  { value: '', label: 'Not set' },
  { value: 'tcp', label: 'The port accepts a connection' },
  { value: 'http', label: 'A request is answered' },
  { value: 'none', label: 'None' },
];

function Running({ shown, settings, reload }: { shown: Shown; settings: Settings; reload(): Promise<void> }) {
  const { id } = shown.application;
  const given = settings.getApplicationSettings;
  const fields = useFields(textsOf(given));
  const [isMaintained, setMaintained] = useState(given.maintenance_mode);
  const action = useAction(async () => {
    await request(UPDATE_SETTINGS, { id, input: { ...inputOf(fields.values), maintenance_mode: isMaintained } });
    await reload();
  });
  const number = { type: 'number', required: true, min: 1 };
  const maintained = {
    checked: isMaintained,
    onChange: (event: Changed) => setMaintained(event.currentTarget.checked),
  };
  const release = 'Runs once per deployment, before the new release serves.';
  const later =
    'All requests are answered with 503, at once. Other settings take effect with the next deployment or restart.';
  return (
    <Section title="Build and run">
      <SavedForm action={action} fields={Object.keys(fields.values)}>
        <div class="columns">
          <Field label="Root directory" {...fields.of('root_directory', action)} placeholder="." hint={FOLDER} />
          <Field label="Build command" {...fields.of('build_command', action)} placeholder="default of the builder" />
          <Field
            label="Output folder"
            {...fields.of('output_directory', action)}
            placeholder="detected"
            hint="Folder of a site that the build makes, such as docs/.vitepress/dist."
          />
          <Field label="Release command" {...fields.of('release_command', action)} hint={release} />
          <Field
            label="Port"
            {...fields.of('port', action)}
            {...number}
            required={false}
            max={65535}
            placeholder="detected"
            hint="If it is empty: the port of the image, or the one on which the program listens."
          />
          <Field label="Log retention in days" {...fields.of('log_retention_days', action)} {...number} max={30} />
          <Select
            label="Health check"
            {...fields.of('type', action)}
            options={CHECKS}
            hint={fields.values.type === '' && 'The HEALTHCHECK of the image, otherwise a connection to the port.'}
            onChange={(value) => fields.set({ type: value })}
          />
          {fields.values.type === 'http' && (
            <Field label="Health check path" {...fields.of('path', action)} required placeholder="/healthz" />
          )}
        </div>
        <Check label="Maintenance mode" name="maintenance_mode" hint={later} {...maintained} />
      </SavedForm>
    </Section>
  );
}

type Given = Settings['getApplicationSettings'];
type Texts = ReturnType<typeof textsOf>;

function textsOf({ http, health_check, run, build, log_retention_days }: Given) {
  return {
    port: http.port === null ? '' : String(http.port),
    type: health_check.type ?? '',
    path: health_check.path ?? '',
    release_command: run.release_command ?? '',
    root_directory: build.root_directory === '.' ? '' : build.root_directory,
    build_command: build.build_command ?? '',
    output_directory: build.output_directory ?? '',
    log_retention_days: String(log_retention_days),
  };
}

function inputOf(texts: Texts) {
  const { port, type, path, release_command, log_retention_days } = texts;
  const { root_directory, build_command, output_directory } = texts;
  return {
    http: { port: port === '' ? null : Number(port) },
    health_check: { type: (type || null) as Given['health_check']['type'], ...(type === 'http' && { path }) },
    run: { release_command: release_command || null },
    build: {
      root_directory: root_directory || '.',
      build_command: build_command || null,
      output_directory: output_directory || null,
    },
    log_retention_days: Number(log_retention_days),
  };
}

interface SavedFormProps {
  action: ReturnType<typeof useAction<void>>;
  fields: readonly string[];
  children: ComponentChildren;
}

function SavedForm({ action, fields, children }: SavedFormProps) {
  const [isSaved, setSaved] = useState(false);
  return (
    <Form action={action} done={setSaved} onInput={() => setSaved(false)}>
      {children}
      <Problem error={action.error} fields={fields} />
      <footer class="actions">
        <span aria-live="polite" class="faint">
          {isSaved ? 'Saved.' : ''}
        </span>
        <Submit action={action}>Save</Submit>
      </footer>
    </Form>
  );
}

function Danger({ shown }: { shown: Shown }) {
  const { id, name, project_id, deletion_protection } = shown.application;
  return (
    <DangerZone
      kind="application"
      name={name}
      projectId={project_id}
      isProtected={deletion_protection}
      consequence={
        'Its deployments, previews, environment variables, process types and custom domains go with it. ' +
        'Volumes and databases stay.'
      }
      remove={async () => {
        await request(DELETE, { id });
        navigate(`/projects/${project_id}`);
      }}
      findUndo={() => undoOfDelete(project_id, id, () => navigate(`/applications/${id}`))}
    >
      <Protection
        kind="application"
        isOn={deletion_protection}
        set={async (on) => {
          await request(UPDATE, { id, input: { deletion_protection: on } });
          await shown.reload();
        }}
      />
    </DangerZone>
  );
}
