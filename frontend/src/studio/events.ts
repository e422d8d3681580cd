/** Server-sent events, with a connection that comes back by itself. */
import { get, type Job, sentence } from "./api";

/** What the server tells: jobs that changed (or all), and what the thread of the models does. */
export interface StudioEvent {
  jobs: Job[];
  whole: boolean;
  work: string;
}

const [FIRST_WAIT, LONGEST_WAIT] = [500, 8000];

/** Listen while the page is visible: a browser keeps six connections to one server for all its tabs. */
export class Events {
  private stream: EventSource | null = null;
  private timer = 0;
  private wait = FIRST_WAIT;

  constructor(private readonly onEvent: (event: StudioEvent) => void, private readonly onTrouble: (text: string) => void) {
    document.addEventListener("visibilitychange", () => this.follow());
    window.addEventListener("online", () => this.retry(0));
    this.follow();
  }

  private follow(): void {
    if (document.hidden) this.close();
    else if (!this.stream) this.open();
  }

  private open(): void {
    this.close();
    const stream = (this.stream = new EventSource("/api/events"));
    stream.addEventListener("state", (event) => {
      this.wait = FIRST_WAIT;
      this.onTrouble("");
      this.onEvent(JSON.parse(event.data as string) as StudioEvent);
    });
    stream.addEventListener("error", () => void this.explain());
  }

  private close(): void {
    clearTimeout(this.timer);
    this.stream?.close();
    this.stream = null;
  }

  /** Say why there are no events, and connect again. */
  private async explain(): Promise<void> {
    this.close();
    const why = await get("/api/jobs").then(
      () => "The connection to the studio broke.",
      (error: unknown) => sentence(error),
    );
    if (this.stream || document.hidden) return;
    this.onTrouble(`${why} Trying to connect again …`);
    this.retry(this.wait);
    this.wait = Math.min(LONGEST_WAIT, 2 * this.wait);
  }

  private retry(wait: number): void {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.follow(), wait);
  }
}
