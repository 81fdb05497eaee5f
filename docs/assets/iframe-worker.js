// Browsers start no workers for pages that are files. There the search runs in a hidden frame,
// which has what it uses of a worker's scope: messages, and scripts that are loaded later.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.appendChild(frame)
      const scope = frame.contentWindow
      this.frame = frame
      this.ready = new Promise((resolve, reject) => {
        scope.postMessage = (data) =>
          this.dispatchEvent(new MessageEvent("message", { data }))
        scope.importScripts = (...urls) =>
          urls.reduce((done, next) => done.then(() => this.load(next)), Promise.resolve())
        this.load(url).then(resolve, reject)
      })
    }

    load(url) {
      return new Promise((resolve, reject) => {
        const inside = this.frame.contentDocument
        const script = inside.createElement("script")
        script.src = new URL(url, location.href).href
        script.onload = resolve
        script.onerror = reject
        inside.body.appendChild(script)
      })
    }

    postMessage(data) {
      this.ready.then(() =>
        this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })))
    }

    terminate() {
      this.frame.remove()
    }
  }
}
