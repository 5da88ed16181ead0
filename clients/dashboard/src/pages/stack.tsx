// The project as a file: what it would change is planned, looked at and applied, and what exists is written as one.
import { useRef, useState } from 'preact/hooks';
import { request } from '../api/client';
import { graphql, type ResultOf } from '../api/graphql';
import { reloadPage, useAction } from '../api/use_query';
import { Dialog } from '../parts/dialog';
import { Field, Form, Problem, Submit, TextArea, useFields } from '../parts/form';
import { showNotice } from '../parts/notices';
import { Page, Section } from '../parts/page';
import { Clip, RowsTable } from '../parts/table';
import { kindWords } from '../parts/words';
import { mayActAs } from '../session';
import { projectFlag } from '../parts/command';

const PLAN = graphql(`
  mutation PlanStack($id: ID!, $input: PlanStackInput!) {
    planStack(id: $id, input: $input) {
      changes {
        action
        type
        name
        fields {
          path
          from
          to
        }
        danger
      }
      refusals {
        name
        path
        line
        detail
      }
      missing_secrets {
        application
        key
        line
      }
      monthly_price {
        currency
        before
        after
      }
      confirm
      requires_approval
      plan_token
    }
  }
`);
const APPLY = graphql(`
  mutation ApplyStack($id: ID!, $input: ApplyStackInput!) {
    applyStack(id: $id, input: $input) {
      changes {
        name
      }
    }
  }
`);
const EXPORT = graphql(`
  query ExportStack($id: ID!) {
    exportStack(id: $id) {
      document
      left_out
    }
  }
`);

type Plan = ResultOf<typeof PLAN>['planStack'];
type Change = Plan['changes'][number];

/** A plan, and what it was made of. */
interface Planned {
  plan: Plan;
  document: string;
}

export function StackPage({ id }: { id: string }) {
  const [planned, setPlanned] = useState<Planned | null>(null);
  const mayChange = mayActAs('developer', id);
  return (
    <Page title="As a file" projectId={id} command={`svc export${projectFlag(id)}`} actions={<Export id={id} />}>
      <p class="faint">
        <code>platform.yaml</code> says what the project has. Planning changes nothing; what the file does not say stays
        as it is.
      </p>
      {mayChange && <PlanForm id={id} setPlanned={setPlanned} />}
      {planned && <Changes key={planned.plan.plan_token} id={id} planned={planned} done={() => setPlanned(null)} />}
    </Page>
  );
}

function Export({ id }: { id: string }) {
  const action = useAction(async () => {
    const { exportStack } = await request(EXPORT, { id });
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob([exportStack.document], { type: 'application/yaml' }));
    link.download = 'platform.yaml';
    link.click();
    URL.revokeObjectURL(link.href);
    const left = exportStack.left_out.length ? ` Left out: ${exportStack.left_out.join(', ')}.` : '';
    showNotice({ text: `What exists was written to platform.yaml, without values of variables.${left}` });
  });
  return (
    <>
      <button type="button" class="quiet" aria-disabled={action.isRunning} onClick={() => void action.run()}>
        Export what exists
      </button>
      <Problem error={action.error} />
    </>
  );
}

function PlanForm({ id, setPlanned }: { id: string; setPlanned(planned: Planned | null): void }) {
  const fields = useFields({ document: '', environment: '' });
  const [prune, setPrune] = useState(false);
  const file = useRef<HTMLInputElement>(null);
  const { document, environment } = fields.values;
  const action = useAction(async () => {
    setPlanned(null);
    const input = { document, environment: environment || null, prune };
    setPlanned({ plan: (await request(PLAN, { id, input })).planStack, document });
  });
  const take = async (input: HTMLInputElement): Promise<void> => {
    const [chosen] = input.files ?? [];
    if (chosen) fields.set({ document: await chosen.text() });
    // The same choice again is a choice.
    input.value = '';
  };
  return (
    <Form action={action} isFleeting onInput={() => setPlanned(null)}>
      <TextArea label="File" rows={14} required {...fields.of('document', action)} />
      <p>
        <input
          ref={file}
          hidden
          type="file"
          accept=".yaml,.yml,.json"
          aria-label="A file of this computer"
          onChange={(event) => void take(event.currentTarget)}
        />
        <button type="button" class="quiet small" onClick={() => file.current?.click()}>
          Choose a file …
        </button>
      </p>
      <Field
        label="Environment"
        hint="One of the environments of the file, or none"
        {...fields.of('environment', action)}
      />
      <label class="check">
        <input type="checkbox" checked={prune} onChange={(event) => setPrune(event.currentTarget.checked)} />
        Delete what exists and is not in the file
      </label>
      <Problem error={action.error} />
      <footer class="actions">
        <Submit action={action}>Plan</Submit>
      </footer>
    </Form>
  );
}

function Changes({ id, planned, done }: { id: string; planned: Planned; done(): void }) {
  const { plan } = planned;
  const { changes, refusals, missing_secrets, monthly_price: price } = plan;
  const [asks, setAsks] = useState(false);
  const apply = plan.plan_token !== null && changes.length > 0 && (
    <button type="button" onClick={() => setAsks(true)}>
      Apply …
    </button>
  );
  return (
    <Section title="Plan" actions={apply}>
      {refusals.length > 0 && (
        <div class="notice bad" role="alert">
          Nothing can be applied until this is changed:
          <ul>
            {refusals.map(({ path, name, line, detail }) => (
              <li key={`${path} ${detail}`}>
                {line !== null && <>line {line}, </>}
                <code>{path || name}</code>: {detail}
              </li>
            ))}
          </ul>
        </div>
      )}
      {missing_secrets.map(({ application, key }) => (
        <p key={`${application} ${key}`} class="faint">
          <code>{key}</code> of {application} is not set yet. Set it on the page of its variables.
        </p>
      ))}
      {price.before !== price.after && (
        <p>
          Price a month: {price.before} → <strong>{price.after}</strong> {price.currency}
        </p>
      )}
      {changes.length === 0 && refusals.length === 0 && <p role="status">Everything is as the file says.</p>}
      {changes.length > 0 && (
        <RowsTable
          label="Changes"
          rows={changes}
          keyOf={({ action, type, name, fields }) => [action, type, name, fields[0]?.path].join(' ')}
          columns={{
            Name: ({ name }) => name,
            Action: (change) => <ActionWords change={change} />,
            Kind: ({ type }) => kindWords(type),
            Fields: (change) => <Clip text={fieldsText(change)} />,
          }}
        />
      )}
      {asks && <Apply id={id} planned={planned} done={done} onClose={() => setAsks(false)} />}
    </Section>
  );
}

function ActionWords({ change: { action, danger } }: { change: Change }) {
  if (!danger) return <>{action}</>;
  return <strong class="problem">{danger === 'destroys_data' ? `${action}, with its data` : action}</strong>;
}

function fieldsText({ fields }: Change): string {
  return fields
    .map(({ path, from, to }) => {
      if (from === null && to === null) return path;
      return from === null ? `${path}: ${to}` : `${path}: ${from} → ${to ?? 'null'}`;
    })
    .join(', ');
}

interface ApplyProps {
  id: string;
  planned: Planned;
  done(): void;
  onClose(): void;
}

/** What has data is deleted only where each of its names was typed in. */
function Apply({ id, planned: { plan, document }, done, onClose }: ApplyProps) {
  const fields = useFields(Object.fromEntries(plan.confirm.map((name) => [name, ''])));
  const count = `${plan.changes.length} ${plan.changes.length === 1 ? 'change' : 'changes'}`;
  const action = useAction(async () => {
    await request(APPLY, { id, input: { document, plan_token: plan.plan_token ?? '', confirm: plan.confirm } });
    showNotice({ text: `Made ${count}. New variables and sizes take effect with the next deployment or restart.` });
    onClose();
    done();
    await reloadPage();
  });
  const isReady = plan.confirm.every((name) => fields.values[name] === name);
  return (
    <Dialog title={`Make ${count}?`} onClose={onClose}>
      <Form action={action} isFleeting>
        {plan.requires_approval && <p>An owner of the project must approve this first.</p>}
        {plan.confirm.map((name) => (
          <Field key={name} label={`Type ${name} to delete it with its data`} autocomplete="off" {...fields.of(name)} />
        ))}
        <Problem error={action.error} />
        <footer class="actions">
          <button type="button" class="quiet" onClick={onClose}>
            Cancel
          </button>
          <button
            type="submit"
            class={plan.confirm.length ? 'danger' : ''}
            disabled={!isReady}
            aria-disabled={action.isRunning}
          >
            Apply
          </button>
        </footer>
      </Form>
    </Dialog>
  );
}
