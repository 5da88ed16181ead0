// A deployment of something else than the head of the branch: a commit, a branch, an image, a folder; or of the same
// once more.
import { useState } from 'preact/hooks';
import { request } from '../../api/client';
import { graphql, type VariablesOf } from '../../api/graphql';
import { useAction, type Action } from '../../api/use_query';
import { Dialog } from '../../parts/dialog';
import { DropSource } from '../../parts/drop_source';
import { Check, Field, Form, Problem, useFields } from '../../parts/form';
import { SubmitWhen } from '../../parts/submit_when';
import { navigate } from '../../router';
import type { Chosen } from '../../source/files';
import { sendSource } from '../../source/send';
import type { ApplicationData } from './frame';

const DEPLOY = graphql(`
  mutation DeployThis($id: ID!, $input: CreateDeploymentInput!) {
    createDeployment(id: $id, input: $input) {
      id
    }
  }
`);

type Input = VariablesOf<typeof DEPLOY>['input'];

async function deploy(id: string, input: Input): Promise<void> {
  const { createDeployment } = await request(DEPLOY, { id, input });
  navigate(`/applications/${id}/deployments/${createDeployment.id}`);
}

interface Earlier {
  branch: string | null;
  commit_sha: string | null;
  image: string | null;
  source: { type: string; source_upload_id: string | null } | null;
}

/** What an earlier deployment was made of. */
function inputOf({ branch, commit_sha, image, source }: Earlier): Input {
  if (source?.type === 'upload') return { source_upload_id: source.source_upload_id };
  if (source?.type === 'image') return { image };
  return source?.type === 'git' ? { branch, commit_sha } : {};
}

interface AgainProps {
  application: ApplicationData;
  deployment: Earlier;
}

const useAgain = ({ application, deployment }: AgainProps): Action<boolean> =>
  useAction((clear_cache: boolean) =>
    deploy(application.id, { ...inputOf(deployment), ...(clear_cache && { clear_cache }) }),
  );

/** What has failed, once more, where what it lacked has just been set. */
export function TryAgain(props: AgainProps & { deployment: { number: number } }) {
  const again = useAgain(props);
  return (
    <>
      <button
        type="button"
        class="small"
        aria-busy={again.isRunning || undefined}
        onClick={() => void again.run(false)}
      >
        Deploy #{props.deployment.number} again
      </button>
      <Problem error={again.error} />
    </>
  );
}

export function DeployAgain(props: AgainProps) {
  const { deployment } = props;
  const again = useAgain(props);
  const isBuilt = deployment.source?.type !== 'image';
  const busy = again.isRunning ? true : undefined;
  return (
    <>
      <button type="button" class="quiet" aria-busy={busy} onClick={() => void again.run(false)}>
        Deploy again
      </button>
      {isBuilt && (
        <button type="button" class="quiet" aria-busy={busy} onClick={() => void again.run(true)}>
          Clear the cache and deploy
        </button>
      )}
      <Problem error={again.error} />
    </>
  );
}

/** `source`: the repository, the image, or the files that were sent last. */
type From = 'source' | 'files';

const EMPTY = { branch: '', commit_sha: '', image: '' };
type Texts = typeof EMPTY;

export function DeployDialog({ application, onClose }: { application: ApplicationData; onClose(): void }) {
  const { id, source, latest_deployment: last } = application;
  const type = source?.type ?? 'upload';
  const again = type === 'upload' && last?.source?.type === 'upload' ? last : null;
  const [from, setFrom] = useState<From>(type === 'upload' ? 'files' : 'source');
  const [chosen, setChosen] = useState<Chosen | null>(null);
  const [clears, setClears] = useState(false);
  const [progress, setProgress] = useState('');
  const fields = useFields(EMPTY);
  const action = useAction(async () => {
    const { branch, commit_sha, image } = fields.values;
    const cache = clears && { clear_cache: true };
    if (from === 'files') {
      if (!chosen) return;
      const source_upload_id = await sendSource(id, chosen, setProgress).finally(() => setProgress(''));
      return deploy(id, { source_upload_id, ...cache });
    }
    if (again) return deploy(id, { ...inputOf(again), ...cache });
    if (type === 'image') return deploy(id, image ? { image } : {});
    return deploy(id, { ...(branch && { branch }), ...(commit_sha && { commit_sha }), ...cache });
  });
  return (
    <Dialog title={`Deploy ${application.name}`} onClose={onClose}>
      <Form action={action}>
        {(type !== 'upload' || again) && <FromChoice {...{ type, again, from }} choose={setFrom} />}
        {from === 'files' && <DropSource chosen={chosen} choose={setChosen} />}
        {from === 'source' && <SourceFields {...{ fields, action }} source={source} />}
        {(from === 'files' || type !== 'image') && (
          <Check
            label="Clear the build cache"
            name="clear_cache"
            checked={clears}
            onChange={(event) => setClears(event.currentTarget.checked)}
            hint="Packages are downloaded and built anew."
          />
        )}
        <p aria-live="polite" class="faint">
          {progress}
        </p>
        <Problem error={action.error} fields={Object.keys(EMPTY)} />
        <footer class="actions">
          <button type="button" class="quiet" onClick={onClose}>
            Cancel
          </button>
          <SubmitWhen isReady={from === 'source' || chosen !== null} action={action}>
            Deploy
          </SubmitWhen>
        </footer>
      </Form>
    </Dialog>
  );
}

interface SourceFieldsProps {
  source: ApplicationData['source'];
  fields: ReturnType<typeof useFields<Texts>>;
  action: Action<void>;
}

function SourceFields({ source, fields, action }: SourceFieldsProps) {
  if (source?.type === 'image')
    return <Field label="Image" {...fields.of('image', action)} placeholder={source.image ?? ''} />;
  if (source?.type !== 'git') return null;
  return (
    <>
      <Field label="Branch" {...fields.of('branch', action)} placeholder={source.branch ?? 'default branch'} />
      <Field
        label="Commit"
        {...fields.of('commit_sha', action)}
        placeholder="newest of the branch"
        autocomplete="off"
        hint="The SHA of a commit of the branch, or at least its first 7 characters."
      />
    </>
  );
}

const SOURCE_NAMES: Record<string, string> = { git: 'The Git repository', image: 'The image', preset: 'The preset' };

interface FromChoiceProps {
  type: string;
  again: { number: number } | null;
  from: From;
  choose(from: From): void;
}

function FromChoice({ type, again, from, choose }: FromChoiceProps) {
  const options: [From, string][] = [
    ['source', again ? `The files of #${again.number}` : (SOURCE_NAMES[type] ?? 'The source')],
    ['files', 'A folder or an archive'],
  ];
  return (
    <fieldset class="segments">
      <legend class="off-screen">What to deploy</legend>
      {options.map(([value, label]) => (
        <label key={value}>
          <input type="radio" name="deploy-from" checked={from === value} onChange={() => choose(value)} />
          {label}
        </label>
      ))}
    </fieldset>
  );
}
