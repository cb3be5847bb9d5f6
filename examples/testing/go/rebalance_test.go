// A member is frozen, 45 seconds pass, and the other one is called with its partitions.
package rebalance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Server is a kgroup that runs for one test.
type Server struct {
	Bootstrap, Control, Token string
}

func start(t *testing.T) *Server {
	t.Helper()
	ready := filepath.Join(t.TempDir(), "ready.json")
	kgroup := os.Getenv("KGROUP")
	if kgroup == "" {
		kgroup = "kgroup"
	}
	command := exec.Command(kgroup, "serve", "--memory", "--port", "0", "--control", "0",
		"--ready-file", ready, "--set", "group.initial.rebalance.delay.ms=0")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { command.Process.Signal(syscall.SIGTERM); command.Wait() })
	server := &Server{}
	until(t, func() bool {
		content, err := os.ReadFile(ready)
		return err == nil && json.Unmarshal(content, server) == nil
	})
	return server
}

// ask asks the control port for something, and returns its answer.
func (s *Server) ask(t *testing.T, method, path string, body any, status int) map[string]any {
	t.Helper()
	var content []byte
	if body != nil {
		content, _ = json.Marshal(body)
	}
	request, _ := http.NewRequest(method, s.Control+path, bytes.NewReader(content))
	request.Header.Set("Authorization", "Bearer "+s.Token)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	said, _ := io.ReadAll(answer.Body)
	if answer.StatusCode != status {
		t.Fatalf("%s %s: %d %s", method, path, answer.StatusCode, said)
	}
	found := map[string]any{}
	json.Unmarshal(said, &found)
	return found
}

func until(t *testing.T, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not in time")
		}
	}
}

// Member is a consumer, and what its callbacks were called with.
type Member struct {
	client *kgo.Client
	mu     sync.Mutex
	owned  map[int32]bool
	lost   int
}

func (s *Server) member(t *testing.T, name string) *Member {
	m := &Member{owned: map[int32]bool{}}
	change := func(partitions map[string][]int32, owned bool) {
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, each := range partitions["orders"] {
			if owned {
				m.owned[each] = true
			} else {
				delete(m.owned, each)
			}
		}
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(s.Bootstrap), kgo.ClientID(name), kgo.ConsumerGroup("pay"), kgo.ConsumeTopics("orders"),
		kgo.HeartbeatInterval(100*time.Millisecond),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, p map[string][]int32) { change(p, true) }),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, p map[string][]int32) { change(p, false) }),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, p map[string][]int32) {
			change(p, false)
			m.mu.Lock()
			m.lost++
			m.mu.Unlock()
		}),
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	m.client = client
	return m
}

func (m *Member) count() int {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	m.client.PollFetches(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.owned)
}

func createTopic(t *testing.T, s *Server) {
	client, err := kgo.NewClient(kgo.SeedBrokers(s.Bootstrap))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	request := kmsg.NewPtrCreateTopicsRequest()
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = "orders", 6, 1
	request.Topics = append(request.Topics, topic)
	answer, err := request.RequestWith(context.Background(), client)
	if err != nil || answer.Topics[0].ErrorCode != 0 {
		t.Fatal(fmt.Sprint(answer, err))
	}
}

func TestTheOtherMemberIsAssignedWhatTheFrozenOneHad(t *testing.T) {
	server := start(t)
	createTopic(t, server)
	a, b := server.member(t, "orders-0"), server.member(t, "orders-1")
	until(t, func() bool { ca, cb := a.count(), b.count(); return ca > 0 && cb > 0 && ca+cb == 6 })
	server.ask(t, "POST", "/members/freeze", map[string]any{"member": "orders-0"}, 200)
	server.ask(t, "POST", "/advance", map[string]any{"by": "45s"}, 200)
	until(t, func() bool { return b.count() == 6 })
	server.ask(t, "POST", "/members/thaw", map[string]any{"member": "orders-0"}, 200)
	until(t, func() bool { b.count(); return a.count() > 0 && a.lost > 0 })
}

func TestRequestsCanBeAssertedOn(t *testing.T) {
	server := start(t)
	createTopic(t, server)
	rules := map[string]any{"rules": []any{map[string]any{"keys": []string{"Produce"}, "error": "NOT_LEADER_OR_FOLLOWER", "count": 2}}}
	server.ask(t, "POST", "/faults", rules, 200)
	client, err := kgo.NewClient(kgo.SeedBrokers(server.Bootstrap))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	record := &kgo.Record{Topic: "orders", Value: []byte("a")}
	if err := client.ProduceSync(context.Background(), record).FirstErr(); err != nil {
		t.Fatal(err)
	}
	if fault := server.ask(t, "GET", "/faults/1", nil, 200); fault["hits"] != 2.0 || fault["left"] != 0.0 {
		t.Fatal(fault)
	}
	server.ask(t, "POST", "/advance", map[string]any{"by": "-1s"}, 400)
}
