// Starts the page: who is logged in, then the page of the address.
import '@picocss/pico/css/pico.classless.min.css';
import './styles/tokens.css';
import './styles/frame.css';
import './styles/bar.css';
import './styles/side.css';
import './styles/palette.css';
import './styles/parts.css';
import './styles/lists.css';
import './styles/tables.css';
import './styles/forms.css';
import './styles/logs.css';
import './styles/state.css';
import './styles/journeys.css';
import { render } from 'preact';
import { useCallback, useEffect, useState } from 'preact/hooks';
import { asApiError, useAgain } from './api/use_query';
import type { ApiError } from './api/client';
import { Keys, startKeyboard } from './keyboard';
import { LazyPage, preloadPage } from './lazy_page';
import { startFocus } from './parts/focus';
import { PaletteHost } from './palette_host';
import { Notices } from './parts/notices';
import { LeaveQuestion } from './parts/leave_question';
import { Waiting } from './parts/page';
import { pages } from './pages';
import { address, matchPath, navigate, startRouter } from './router';
import { loadSession, viewer } from './session';
import { Shell } from './shell';
import { startTheme } from './theme';

/** Pages for people who are not logged in; a setup ends the session with the address of before. */
const OPEN = ['/sign-in', '/welcome', '/installation/domain/progress'];

function App() {
  const [error, setError] = useState<ApiError | null>(null);
  const { path } = address.value;
  const isOpen = OPEN.includes(path);
  const load = useCallback(
    () =>
      loadSession().then(
        () => setError(null),
        (problem: unknown) => setError(asApiError(problem)),
      ),
    [],
  );
  useEffect(() => {
    if (!isOpen && viewer.value === undefined) void load();
  }, [isOpen]);
  // A page that is loaded while the service restarts.
  useAgain(error, load);
  useEffect(() => {
    if (viewer.value === null && !isOpen) {
      const to = location.pathname + location.search;
      navigate(to === '/' ? '/sign-in' : `/sign-in?return_to=${encodeURIComponent(to)}`, 'replace');
    }
  }, [viewer.value, isOpen]);
  if (isOpen) return <Shell isOpen>{<CurrentPage />}</Shell>;
  if (!viewer.value) {
    return (
      <Shell isOpen={false}>
        <main id="main" tabIndex={-1}>
          <h1 class="off-screen">Dashboard</h1>
          <Waiting error={error} />
        </main>
      </Shell>
    );
  }
  return (
    <Shell isOpen={false}>
      <CurrentPage />
      <PaletteHost />
      <Keys />
      <LeaveQuestion />
      <Notices />
    </Shell>
  );
}

function CurrentPage() {
  const { path } = address.value;
  for (const [pattern, load] of pages) {
    const found = matchPath(pattern, path);
    if (found) return <LazyPage key={path} load={load} given={found} />;
  }
  return (
    <main id="main" tabIndex={-1}>
      <h1>Page not found</h1>
      <p>
        There is no page at <code>{path}</code>. <a href="/">All projects</a>
      </p>
    </main>
  );
}

/** The script of the page is on its way while the session is asked for. */
function preloadCurrentPage(): void {
  const [, load] = pages.find(([pattern]) => matchPath(pattern, location.pathname)) ?? [];
  if (load) preloadPage(load);
}

startTheme();
preloadCurrentPage();
startRouter();
startKeyboard();
startFocus();
render(<App />, document.getElementById('app') as HTMLElement);
