// How far the setup of the domain is, while the service restarts under the page.
import { useEffect, useState } from 'preact/hooks';
import { graphql } from '../../api/graphql';
import { useQuery } from '../../api/use_query';
import { navigate } from '../../router';
import { forgetSetup, storedSetup, type StoredSetup } from './stored_setup';

const PROGRESS = graphql(`
  query SetupProgress($token: String!) {
    setupProgress(token: $token) {
      outcome
      lines
      reason
      address
    }
  }
`);
const POLL_MS = 2_000;

/** For whoever has the token: the session ends with the address of before. */
export function SetupProgressPage() {
  const [started] = useState(() => storedSetup.peek());
  useEffect(() => {
    if (started === null) navigate('/installation/domain', 'replace');
  }, []);
  const title = started ? `Setting up ${started.address}` : 'Domain';
  useEffect(() => void (document.title = `${title} · Dashboard`), []);
  return (
    <main id="main" tabIndex={-1}>
      <h1>{title}</h1>
      {started && <Progress started={started} />}
    </main>
  );
}

function Progress({ started: { token, address } }: { started: StoredSetup }) {
  const { data, error } = useQuery(PROGRESS, { token }, POLL_MS);
  const again = (): void => {
    forgetSetup();
    navigate('/installation/domain', 'replace');
  };
  const progress = data?.setupProgress;
  const isDone = progress?.outcome === 'done';
  useEffect(() => {
    if (!isDone) return;
    // The address of before leads to the new one, also when it is opened again.
    if (address === location.origin) forgetSetup();
    location.assign(`${address}/installation`);
  }, [isDone]);
  // Another one was begun since, or the release was installed anew.
  const isForgotten = error?.code === 'not_found';
  useEffect(() => {
    if (isForgotten) again();
  }, [isForgotten]);
  return (
    <>
      <pre class="changes" tabIndex={0} role="log" aria-label="Progress">
        {progress?.lines.join('\n') || 'Starting …'}
      </pre>
      {isDone && (
        <p class="notice good" role="status">
          The dashboard is at <a href={`${address}/installation`}>{address}</a> now. Log in there.
        </p>
      )}
      {progress?.outcome === 'failed' && (
        <div class="notice bad" role="alert">
          <p>{progress.reason}</p>
          <button type="button" class="quiet" onClick={again}>
            Back
          </button>
        </div>
      )}
      {error && !isDone && progress?.outcome !== 'failed' && (
        <p class="notice" role="status">
          The service does not answer here at the moment. If that lasts, it has its new address: open{' '}
          <a href={`${address}/installation`}>{address}</a> in a minute or two. If HTTPS does not work there, the
          settings of before come back by themselves, and this page goes on.
        </p>
      )}
    </>
  );
}
