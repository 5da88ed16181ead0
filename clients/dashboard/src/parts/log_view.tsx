// A log of any length: only the lines on the screen are in the document.
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { IS_NARROW } from './log_wrap';

export interface LogLine {
  timestamp: string;
  level: string;
  message: string;
  /** Where it comes from, such as a process type or a step. */
  origin: string;
}

/** So many lines are kept; the oldest go first. */
const LINES_MAX = 100_000;
/** Times are links: targets have 24 pixels at least (WCAG 2.5.8). */
const ROW_PX = 24;
const MARGIN_ROWS = 20;

/** Lines in their order. Pages keep one for as long as they show the log. */
export class LogLines {
  private lines: LogLine[] = [];

  get length(): number {
    return this.lines.length;
  }

  append(more: readonly LogLine[]): void {
    for (const line of more) this.lines.push(line);
    // In large pieces: to take one from the front moves all others.
    if (this.lines.length > LINES_MAX * 1.1) this.lines = this.lines.slice(-LINES_MAX);
  }

  prepend(older: readonly LogLine[]): void {
    this.lines = [...older, ...this.lines].slice(-LINES_MAX);
  }

  slice(from: number, to?: number): LogLine[] {
    return this.lines.slice(from, to);
  }

  /** Of a line that is picked; -1 where it is not among them. */
  indexOf(isPicked: (line: LogLine) => boolean): number {
    return this.lines.findIndex(isPicked);
  }

  text(): string {
    return this.lines.map(({ timestamp, origin, message }) => `${timestamp} ${origin} ${plain(message)}`).join('\n');
  }
}

interface LogViewProps {
  label: string;
  lines: LogLines;
  /** Rises with each change of the lines. */
  version: number;
  /** Shown where there is no line. */
  empty: string;
  /** Long lines are broken. */
  wraps?: boolean;
  /** The line that an address names: it is shown in the middle. */
  isPicked?: (line: LogLine) => boolean;
  /** Address of a line, behind its time. */
  addressOf?: (line: LogLine) => string;
  onTop?: () => void;
}

/** Where lines are broken their heights differ, so that those off the screen are in the document too. */
const WRAPPED_MAX = IS_NARROW ? 1_000 : 5_000;

export function LogView({ label, lines, version, empty, wraps = false, isPicked, addressOf, onTop }: LogViewProps) {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ from: 0, to: 60 });
  const [isAtEnd, setAtEnd] = useState(!isPicked);
  const measure = (): void => {
    const element = box.current;
    if (!element) return;
    const first = Math.floor(element.scrollTop / ROW_PX);
    const from = Math.max(0, first - MARGIN_ROWS);
    const to = first + Math.ceil(element.clientHeight / ROW_PX) + MARGIN_ROWS;
    setView((before) => (before.from === from && before.to === to ? before : { from, to }));
    setAtEnd(element.scrollTop + element.clientHeight >= element.scrollHeight - ROW_PX);
    if (element.scrollTop === 0 && first === 0) onTop?.();
  };
  const picked = isPicked ? lines.indexOf(isPicked) : -1;
  useLayoutEffect(() => {
    const element = box.current;
    if (!element || picked < 0) return;
    const row = wraps ? element.querySelector<HTMLElement>('.picked') : null;
    const top = row ? row.offsetTop : picked * ROW_PX;
    element.scrollTop = top - element.clientHeight / 2;
    measure();
  }, [picked, wraps]);
  useLayoutEffect(() => {
    if (isAtEnd && box.current) box.current.scrollTop = box.current.scrollHeight;
    measure();
  }, [version, wraps]);
  useEffect(() => {
    const resized = (): void => (isAtEnd ? jump() : measure());
    addEventListener('resize', resized);
    return () => removeEventListener('resize', resized);
  }, [isAtEnd]);
  const jump = (): void => {
    if (box.current) box.current.scrollTop = box.current.scrollHeight;
    measure();
  };
  return (
    <div class="log">
      <div ref={box} class="log-box" tabIndex={0} role="region" aria-label={label} onScroll={measure}>
        {wraps ? <Wrapped {...{ lines, isPicked, addressOf }} /> : <Rows {...{ lines, view, isPicked, addressOf }} />}
        {lines.length === 0 && <p class="log-empty">{empty}</p>}
      </div>
      {!isAtEnd && (
        <button type="button" class="small jump" onClick={jump}>
          Newest lines
        </button>
      )}
    </div>
  );
}

type LineLooks = Pick<LogViewProps, 'lines' | 'isPicked' | 'addressOf'>;

function Rows({ lines, view, ...looks }: LineLooks & { view: { from: number; to: number } }) {
  return (
    <div class="log-rows" style={{ height: `${lines.length * ROW_PX}px` }}>
      <div style={{ transform: `translateY(${view.from * ROW_PX}px)` }}>
        {lines.slice(view.from, view.to).map((line, index) => (
          <Line key={view.from + index} line={line} {...looks} />
        ))}
      </div>
    </div>
  );
}

function Wrapped({ lines, ...looks }: LineLooks) {
  const from = Math.max(0, lines.length - WRAPPED_MAX);
  return (
    <div class="log-wrapped">
      {from > 0 && <p class="log-empty">Older lines are shown when lines are not wrapped.</p>}
      {lines.slice(from).map((line, index) => (
        <Line key={from + index} line={line} {...looks} />
      ))}
    </div>
  );
}

const DAY = new Intl.DateTimeFormat('en-GB', { day: '2-digit', month: 'short' });

function Line({ line, isPicked, addressOf }: Omit<LineLooks, 'lines'> & { line: LogLine }) {
  const time = <time dateTime={line.timestamp}>{clock(line.timestamp)}</time>;
  return (
    <div class={`log-line ${line.level}${isPicked?.(line) ? ' picked' : ''}`}>
      {addressOf ? (
        <a class="log-time" href={addressOf(line)} title={`${line.timestamp}: show the lines around it`}>
          {time}
        </a>
      ) : (
        time
      )}
      <span class="origin">{line.origin}</span>
      <span class="message">{plain(line.message)}</span>
    </div>
  );
}

/** With its day, unless that is today: of yesterday's lines the clock alone says the wrong thing. */
function clock(timestamp: string): string {
  const time = new Date(timestamp);
  const day = time.toDateString() === new Date().toDateString() ? '' : `${DAY.format(time)} `;
  const pad = (value: number, digits = 2): string => String(value).padStart(digits, '0');
  const parts = [time.getHours(), time.getMinutes(), time.getSeconds()].map((part) => pad(part));
  return `${day}${parts.join(':')}.${pad(time.getMilliseconds(), 3)}`;
}

/** Without the colours and movements that programs write for terminals (ECMA-48). */
function plain(message: string): string {
  return message.includes('\u001b') ? message.replace(/\u001b(?:\[[0-?]*[ -/]*[@-~]|[@-_])/g, '') : message;
}
