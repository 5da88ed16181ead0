// The lines around one that an address names: of all sources and levels, whatever was searched for.
import { useEffect, useRef, useState } from 'preact/hooks';
import { asApiError } from '../../api/use_query';
import { CopyButton } from '../../parts/copy';
import { LogLines, LogView } from '../../parts/log_view';
import { WrapSwitch, type Wrapping } from '../../parts/log_wrap';
import { momentText } from '../../parts/time';
import { addressOf, nameOf, readAround } from './log_lines';

interface ContextProps extends Wrapping {
  id: string;
  /** `<time>_<number>`, as `nameOf` makes it. */
  line: string;
}

export function LogContext({ id, line, wraps, wrap }: ContextProps) {
  const lines = useRef(new LogLines()).current;
  const [version, setVersion] = useState(0);
  const [problem, setProblem] = useState<string | null>(null);
  const time = line.replace(/_\w*$/, '');
  useEffect(() => {
    readAround(id, time).then(
      (around) => {
        lines.append(around);
        setVersion(1);
        if (!around.some((one) => nameOf(one) === line))
          setProblem('The line is not kept any more, or the address is not whole. These are the lines of its time.');
      },
      (error: unknown) => setProblem(asApiError(error).message),
    );
  }, []);
  const query = new URLSearchParams(location.search);
  query.delete('line');
  return (
    <>
      <header class="log-head">
        <span>
          Lines around <time dateTime={time}>{Number.isNaN(Date.parse(time)) ? time : momentText(new Date(time))}</time>
        </span>
        <div class="log-tools">
          <CopyButton text={location.href} label="the link to the line" shown="Copy the link" />
          <WrapSwitch {...{ wraps, wrap }} />
          <a role="button" class="quiet small" href={`/applications/${id}/logs?${query}`}>
            Back to the log
          </a>
        </div>
      </header>
      {problem && (
        <p class="notice bad" role="alert">
          {problem}
        </p>
      )}
      <LogView
        key={version}
        label="Log around the line"
        lines={lines}
        version={version}
        wraps={wraps}
        isPicked={(one) => nameOf(one) === line}
        addressOf={addressOf}
        empty={version ? 'No lines of this time are kept.' : 'Loading …'}
      />
    </>
  );
}
