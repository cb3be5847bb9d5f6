// Command driver hosts franz-go clients and speaks JSON lines: {"id", "op", ...} in,
// {"id", "result"} or {"id", "error", "message"} out. See tests/interop/driver.py.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

const patience = 30 * time.Second

type row [3]any // topic, partition, offset

type request struct {
	ID         int64      `json:"id"`
	Op         string     `json:"op"`
	Name       string     `json:"name"`
	Bootstrap  string     `json:"bootstrap"`
	Group      string     `json:"group"`
	Topics     []string   `json:"topics"`
	Pattern    string     `json:"pattern"`
	Instance   string     `json:"instance"`
	Protocol   string     `json:"protocol"`
	Assignor   string     `json:"assignor"`
	SessionMs  int        `json:"session_ms"`
	Offsets    []position `json:"offsets"`
	Partitions []position `json:"partitions"`
	Instances  []string   `json:"instances"`
	Leave      bool       `json:"leave"`

	Config map[string]string `json:"config"`

	TransactionalID string `json:"transactional_id"`
	To              string `json:"to"`
	Count           int    `json:"count"`
	Commit          bool   `json:"commit"`
}

type reply struct {
	ID      int64  `json:"id"`
	Result  any    `json:"result"`
	Error   string `json:"error,omitempty"`
	Message string `json:"message,omitempty"`
}

type driver struct {
	mu      sync.Mutex
	members map[string]*member

	sessions sync.Map // of *session by name
}

func main() {
	d := &driver{members: map[string]*member{}}
	var out sync.Mutex
	writer := json.NewEncoder(os.Stdout)
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		go func() {
			answer := reply{ID: r.ID}
			result, err := d.run(&r)
			if err == nil {
				answer.Result = result
			} else {
				answer.Error, answer.Message = code(err), err.Error()
			}
			out.Lock()
			defer out.Unlock()
			if err := writer.Encode(answer); err != nil {
				os.Exit(1)
			}
		}()
	}
}

// code is the name of Kafka's error code, else the error's type.
func code(err error) string {
	var known *kerr.Error
	if errors.As(err, &known) {
		return known.Message
	}
	return fmt.Sprintf("%T", err)
}

func (d *driver) run(r *request) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if len(r.Op) > 6 && r.Op[:6] == "admin." {
		return administer(ctx, r)
	}
	if len(r.Op) > 8 && r.Op[:8] == "session." {
		return d.transact(ctx, r)
	}
	if r.Op == "start" {
		m, err := start(r)
		if err == nil {
			d.put(r.Name, m)
		}
		return nil, err
	}
	m := d.get(r.Name)
	if m == nil {
		return nil, fmt.Errorf("no member %s", r.Name)
	}
	switch r.Op {
	case "state":
		return m.state(), nil
	case "records":
		return m.records(), nil
	case "commit":
		return nil, m.commit(ctx, r.Offsets)
	case "committed":
		return m.committed(ctx, r.Group, r.Partitions)
	case "close":
		d.put(r.Name, nil)
		return nil, m.close(r.Leave)
	}
	return nil, fmt.Errorf("unknown operation %s", r.Op)
}

func (d *driver) transact(ctx context.Context, r *request) (any, error) {
	if r.Op == "session.open" {
		made, err := openSession(r)
		if err == nil {
			d.sessions.Store(r.Name, made)
		}
		return nil, err
	}
	found, known := d.sessions.Load(r.Name)
	if !known {
		return nil, fmt.Errorf("no session %s", r.Name)
	}
	switch r.Op {
	case "session.copy":
		return found.(*session).copy(ctx, r)
	case "session.close":
		d.sessions.Delete(r.Name)
		found.(*session).Close()
		return nil, nil
	}
	return nil, fmt.Errorf("unknown operation %s", r.Op)
}

func (d *driver) get(name string) *member {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.members[name]
}

func (d *driver) put(name string, m *member) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.members[name] = m
}
